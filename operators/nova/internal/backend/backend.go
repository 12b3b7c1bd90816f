// Package backend connects the engine with the servers at which accounts are registered:
// the needs of a stage, the call that registers an account, the connection Secret of the
// services, and the call that removes the account.
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

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/registration"
)

// Backend is one account at a server, with the database or vhost that the account may use.
// If the connection Secret is given, an administrator has registered the account, and the
// operator neither registers nor removes anything.
type Backend struct {
	// Owner is the custom resource for which the account is registered.
	Owner client.Object
	// Connection names the Service or the host and the Secret of the server's
	// administrator, or the given connection Secret. For Keystone it has neither Service
	// nor host: the administrator's Secret has the URL.
	Connection novav1.Connection
	// Server is the kind of the server.
	Server Server
	// Name of the database, the vhost or the user. The account's name begins with it.
	Name string
	// Purpose is a part of the connection Secret's name: <owner>-<purpose>-<hash>.
	Purpose string
	// Key of the account's password in the Secret of credentials.
	Key string
}

// Server is the kind of a server: Database, MessageBus, Identity or Catalog.
type Server interface {
	// kind begins the reasons of conditions, such as DatabaseUnreachable.
	kind() string
	// locator is the key with the server's address in a connection Secret.
	locator() string
	// parse returns an error if no service can use a connection Secret.
	parse(secret map[string][]byte) error
	// settings returns the keys of the connection Secret that are specific to the kind.
	settings(Backend, engine.Inputs) (map[string]string, error)
	// connect logs in as the administrator. It returns the objects of the backend in the
	// order of their creation.
	connect(context.Context, Backend, engine.Inputs) (objects []remoteObject, disconnect func(), err error)
	// remains describes the objects that remain if nothing can be removed.
	remains(Backend) string
}

// remoteObject is an object at a server, for example a user.
type remoteObject struct {
	name   string
	ensure func() error
	remove func() error // nil: the object is retained
	absent func() (bool, error)
}

// inputs are the Secrets and the Service that the first stage waits for.
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

// needs of a stage that registers or uses the account.
func (b Backend) needs() []engine.Need {
	if b.Connection.Given() {
		return b.inputs()
	}
	return append(b.inputs(), engine.Cluster(), engine.Secret(credentialsName(b.Owner), b.Key))
}

// teardownNeeds are the needs of the stage that removes the account. They are optional: the
// stage ends if an object that it needs no longer exists.
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

// diagnosisNeeds are the needs of a call that uses the account if it is known.
func (b Backend) diagnosisNeeds() []engine.Need {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return []engine.Need{engine.Secret(given.Name).Optional()}
	}
	return append(b.teardownNeeds(), engine.Secret(credentialsName(b.Owner)).Optional())
}

// check waits if no service can use the given connection Secret. It builds nothing. The
// stage runs again when the Secret changes.
func (b Backend) check(in engine.Inputs) ([]engine.Child, error) {
	if given := b.Connection.ConnectionSecretRef; given != nil {
		return nil, b.unusable(b.Server.parse(in.Secret(given.Name)))
	}
	return nil, nil
}

// unusable adds the name of the given connection Secret to the error of its content.
func (b Backend) unusable(err error) error {
	if given := b.Connection.ConnectionSecretRef; given != nil && err != nil {
		return engine.Wait("Secret %s: %s", given.Name, err)
	}
	return err
}

// ensure registers the account.
func (b Backend) ensure(ctx context.Context, in engine.Inputs) error {
	return b.use(ctx, in, func(objects []remoteObject) error {
		for _, object := range objects {
			if err := object.ensure(); err != nil {
				return err
			}
		}
		return nil
	})
}

// remove removes the account, and checks that it is removed. It abandons the account if the
// Secret or the Service of the server no longer exists, or if the owner has
// commonv1.AnnotationAbandon and the removal fails.
func (b Backend) remove(ctx context.Context, in engine.Inputs) error {
	admin, service := b.Connection.AdminSecretRef, b.Connection.ServiceRef
	remains := b.Server.remains(b) + " at "
	switch {
	case service != nil:
		remains += "Service " + service.Name
	case b.Connection.Host != "":
		remains += b.hostText()
	default:
		remains += "the Keystone of Secret " + admin.Name
	}
	// The stage waits for the correction of a wrong Secret or Service, but not for a
	// Secret or a Service that does not exist.
	if in.Secret(admin.Name) == nil {
		return engine.Abandon("%s: Secret %s no longer exists", remains, admin.Name)
	}
	if service != nil {
		if _, exists := engine.Get[*corev1.Service](in, service.Name); !exists {
			return engine.Abandon("%s: Service %s no longer exists", remains, service.Name)
		}
	}
	err := b.use(ctx, in, removeAll)
	if err != nil && b.Owner.GetAnnotations()[commonv1.AnnotationAbandon] == "true" {
		return engine.Abandon("%s: %s", remains, err)
	}
	return err
}

func removeAll(objects []remoteObject) error {
	for _, object := range slices.Backward(objects) {
		if object.remove == nil {
			continue
		}
		if err := object.remove(); err != nil {
			return err
		}
		absent, err := object.absent()
		if err != nil {
			return err
		}
		if !absent {
			return fmt.Errorf("%s still exists after its deletion", object.name) //nolint:err113 // only a condition shows it
		}
	}
	return nil
}

// use logs in and calls do with the objects of the backend.
func (b Backend) use(ctx context.Context, in engine.Inputs, do func([]remoteObject) error) error {
	objects, disconnect, err := b.Server.connect(ctx, b, in)
	if err != nil {
		return failure(b.Server.kind(), err)
	}
	defer disconnect()
	return failure(b.Server.kind(), do(objects))
}

// failure adds the reason of the condition to the error of a server. The call is retried,
// because no event in the cluster announces that it would succeed.
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

// Secret returns the name of the connection Secret and, unless it is given, the Secret
// itself. The Secret is immutable and its name has a hash of its content: a rollout moves
// each service to the new Secret. The old Secret exists until the owner is ready.
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

// connection returns the data of the connection Secret.
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

// mark returns the ownership mark of the objects at the server.
func (b Backend) mark(in engine.Inputs) registration.Mark {
	return registration.NewMark(in.Cluster(), b.Owner.GetNamespace(), b.Owner.GetName())
}

// account returns the account's name. It ends in six hex digits of a hash of the owner's
// UID, so that the name is unique.
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
