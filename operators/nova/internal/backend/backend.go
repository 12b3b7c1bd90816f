// Package backend joins the servers on which accounts are registered with the
// engine: the needs of a stage, the call that registers an account, the
// connection Secret that services get, and the call that removes the account.
package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/registration"
)

// AnnotationAbandon on an owner lets its deletion go on although a server is
// unreachable or refuses the administrator's account: an event lists the things
// that could not be removed.
const AnnotationAbandon = "asterism.dev/abandon"

// Backend is one account at a server, with what the account may use there. If
// the connection Secret is given, the administrator has registered the account,
// and nothing is registered or removed.
type Backend struct {
	// Owner is the custom resource for which the account is registered.
	Owner client.Object
	// Connection names the Service or the host and the Secret of the server's
	// administrator, or the Secret that is given. Keystone has neither Service nor host:
	// the administrator's Secret has its URL.
	Connection novav1.Connection
	// Server says what kind of server it is.
	Server Server
	// Name of the database, the vhost or the user. The account is named after it.
	Name string
	// Purpose names the connection Secret: <owner>-<purpose>-<hash>.
	Purpose string
	// Key of the account's password in the Secret of credentials.
	Key string
}

// Server is one of the kinds of server: Database, MessageBus, Identity or
// Catalog.
type Server interface {
	// kind begins the reasons of conditions, such as DatabaseUnreachable.
	kind() string
	// locator is the key with the server's address in a connection Secret.
	locator() string
	// parse refuses a connection Secret that no service could use.
	parse(secret map[string][]byte) error
	// settings are the data of the connection Secret, besides those of any server.
	settings(Backend, engine.Inputs) (map[string]string, error)
	// connect logs in as the administrator. It returns the things of the backend,
	// in the order in which they are made.
	connect(context.Context, Backend, engine.Inputs) (things []thing, disconnect func(), err error)
	// left describes the things that stay behind if nothing can be removed.
	left(Backend) string
}

// thing is made at a server, for example a user.
type thing struct {
	name   string
	ensure func() error
	remove func() error // nil: the thing is retained
	absent func() (bool, error)
}

// inputs are waited for before anything else.
func (b Backend) inputs() []engine.Need {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return []engine.Need{engine.Secret(given.Name, b.Server.locator(), config.KeyUser, config.KeyPassword)}
	}
	admin := b.Connection.AdminSecretRef.Name
	needs := []engine.Need{
		engine.AnyOf(engine.Secret(admin, config.KeyUser), engine.Secret(admin, config.KeyUsername)),
		engine.Secret(admin, config.KeyPassword),
	}
	switch {
	case b.Connection.ServiceRef != nil:
		return append(needs, b.serviceNeed())
	case b.Connection.Host != "":
		return needs
	}
	return append(needs, engine.Secret(admin, b.Server.locator()))
}

func (b Backend) serviceNeed() engine.Need {
	return engine.Existing(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: b.Connection.ServiceRef.Name}})
}

// needs of the stage that registers, or that uses the account.
func (b Backend) needs() []engine.Need {
	if b.Connection.Given() {
		return b.inputs()
	}
	return append(b.inputs(), engine.Cluster(), engine.Secret(credentialsName(b.Owner), b.Key))
}

// teardownNeeds are the needs of the stage that removes. Without them nothing
// can be removed.
func (b Backend) teardownNeeds() []engine.Need {
	if b.Connection.Given() {
		return nil
	}
	needs := []engine.Need{engine.Cluster(), engine.Secret(b.Connection.AdminSecretRef.Name).Optional()}
	if b.Connection.ServiceRef != nil {
		needs = append(needs, b.serviceNeed().Optional())
	}
	return needs
}

// diagnosisNeeds are the needs of a call that can do without the account.
func (b Backend) diagnosisNeeds() []engine.Need {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return []engine.Need{engine.Secret(given.Name).Optional()}
	}
	return append(b.teardownNeeds(), engine.Secret(credentialsName(b.Owner)).Optional())
}

// check refuses a given Secret that no service could use; it builds nothing. The
// Secret's next version wakes the stage.
func (b Backend) check(in engine.Inputs) ([]engine.Child, error) {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		if err := b.Server.parse(in.Secret(given.Name)); err != nil {
			return nil, engine.Wait("Secret %s: %s", given.Name, err)
		}
	}
	return nil, nil
}

// ensure registers the account.
func (b Backend) ensure(ctx context.Context, in engine.Inputs) error {
	return b.use(ctx, in, func(things []thing) error {
		for _, thing := range things {
			if err := thing.ensure(); err != nil {
				return err
			}
		}
		return nil
	})
}

// remove removes the account, and looks whether it is gone. It abandons the
// account if the means are gone or the user says so.
func (b Backend) remove(ctx context.Context, in engine.Inputs) error {
	admin, service := b.Connection.AdminSecretRef, b.Connection.ServiceRef
	left := b.Server.left(b) + " at "
	switch {
	case service != nil:
		left += "Service " + service.Name
	case b.Connection.Host != "":
		left += "host " + b.Connection.Host
	default:
		left += "the Keystone of Secret " + admin.Name
	}
	// A Secret or a Service that exists and is wrong can be corrected. Nothing
	// can be waited for if it does not exist.
	if in.Secret(admin.Name) == nil {
		return engine.Abandon("%s: Secret %s no longer exists", left, admin.Name)
	}
	if service != nil {
		if _, exists := engine.Get[*corev1.Service](in, service.Name); !exists {
			return engine.Abandon("%s: Service %s no longer exists", left, service.Name)
		}
	}
	err := b.use(ctx, in, removeAll)
	if err != nil && b.Owner.GetAnnotations()[AnnotationAbandon] == "true" {
		return engine.Abandon("%s: %s", left, err)
	}
	return err
}

func removeAll(things []thing) error {
	for _, thing := range slices.Backward(things) {
		if thing.remove == nil {
			continue
		}
		if err := thing.remove(); err != nil {
			return err
		}
		absent, err := thing.absent()
		if err != nil {
			return err
		}
		if !absent {
			return fmt.Errorf("%s still exists after its deletion", thing.name) //nolint:err113 // only a condition shows it
		}
	}
	return nil
}

// use logs in and does something with the things of the backend.
func (b Backend) use(ctx context.Context, in engine.Inputs, do func([]thing) error) error {
	things, disconnect, err := b.Server.connect(ctx, b, in)
	if err != nil {
		return failure(b.Server.kind(), err)
	}
	defer disconnect()
	return failure(b.Server.kind(), do(things))
}

// failure gives a server's error the reason that a condition shows. The call is
// tried again, because nothing in the cluster tells when it would succeed.
func failure(kind string, err error) error {
	var unreachable *registration.Unreachable
	var denied *registration.Denied
	var conflict *registration.Conflict
	switch {
	case errors.As(err, &conflict):
		return engine.Fail(engine.ReasonConflict, err)
	case errors.As(err, &denied):
		return engine.Fail(kind+"Denied", err)
	case errors.As(err, &unreachable), errors.Is(err, context.DeadlineExceeded):
		return engine.Fail(kind+"Unreachable", err)
	}
	return err
}

// Secret returns the name of the connection Secret and, unless it is given, the
// Secret itself. The Secret is immutable and named by its content, so that a
// service moves to the next Secret in an orderly way. The old Secret stays until
// then.
func (b Backend) Secret(in engine.Inputs) (string, []engine.Child, error) {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return given.Name, nil, nil
	}
	data, err := b.connection(in)
	if err != nil {
		return "", nil, err
	}
	texts := map[string]string{}
	for key, value := range data {
		texts[key] = string(value)
	}
	encoded, err := json.Marshal(texts)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(encoded)
	name := b.Owner.GetName() + "-" + b.Purpose + "-" + hex.EncodeToString(sum[:4])
	return name, []engine.Child{engine.Lingering(applycorev1.Secret(name, "").WithImmutable(true).WithData(data))}, nil
}

// connection is the data of the connection Secret.
func (b Backend) connection(in engine.Inputs) (map[string][]byte, error) {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return in.Secret(given.Name), nil
	}
	settings, err := b.Server.settings(b, in)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{config.KeyUser: []byte(b.account()), config.KeyPassword: []byte(b.password(in))}
	for key, value := range settings {
		data[key] = []byte(value)
	}
	for _, key := range []string{config.KeyTLS, config.KeyCA} {
		if value := in.Secret(b.Connection.AdminSecretRef.Name)[key]; len(value) > 0 {
			data[key] = value
		}
	}
	return data, nil
}

// mark is written into everything that is made at the server.
func (b Backend) mark(in engine.Inputs) registration.Mark {
	return registration.NewMark(in.Cluster(), b.Owner.GetNamespace(), b.Owner.GetName())
}

// account is the account's name. It ends in six hex digits of the owner's UID,
// so that no other account has the name.
func (b Backend) account() string {
	sum := sha256.Sum256([]byte(b.Owner.GetUID()))
	return b.Name + "_" + hex.EncodeToString(sum[:3])
}

func (b Backend) password(in engine.Inputs) config.Password {
	return config.Password(in.Secret(credentialsName(b.Owner))[b.Key])
}

func (b Backend) administrator(in engine.Inputs) (config.Administrator, error) {
	name := b.Connection.AdminSecretRef.Name
	data := in.Secret(name)
	if data == nil {
		return config.Administrator{}, engine.Wait("Secret %s does not exist", name)
	}
	admin, err := config.ParseAdministrator(data)
	if err != nil {
		return admin, engine.Wait("Secret %s: %s", name, err)
	}
	return admin, nil
}
