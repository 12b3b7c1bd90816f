package registration

import (
	"context"
	"strings"
	"testing"

	"asterism.dev/lib/registration/database"
	"asterism.dev/lib/registration/identity"
	"asterism.dev/lib/registration/messagebus"
)

// TestEveryClientRefusesLocalAddresses checks the default, without --allow-any-server.
func TestEveryClientRefusesLocalAddresses(t *testing.T) {
	for kind, connect := range map[string]func(context.Context) error{
		"Database": func(ctx context.Context) error {
			_, err := database.Connect(ctx, database.Server{Address: "127.0.0.1:3306", User: "root"})
			return err
		},
		"MessageBus": func(ctx context.Context) error {
			_, err := messagebus.Connect(ctx, messagebus.Server{Address: "127.0.0.1:15672", User: "admin"})
			return err
		},
		"Identity": func(ctx context.Context) error {
			_, err := identity.Connect(ctx, identity.Server{AuthURL: "http://127.0.0.1:5000/v3", User: "admin", Password: "secret"})
			return err
		},
	} {
		if err := connect(t.Context()); err == nil || !strings.Contains(err.Error(), "has the local address 127.0.0.1") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
