// Package registration gives an operator of an OpenStack service its stages for accounts at
// MariaDB, RabbitMQ and Keystone: the needs of a stage, the call that registers an account, the
// connection Secret of the services, and the call that removes the account.
package registration

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
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
	"asterism.dev/lib/registration/remote"
)

// Account is one account at a server, with the database or vhost that it may use.
// If the connection Secret is given, an administrator has registered the account, and the
// operator neither registers nor removes anything.
type Account struct {
	// Owner is the custom resource for which the account is registered.
	Owner client.Object
	// Connection names the Service or the host and the Secret of the server's
	// administrator, or the given connection Secret. For Keystone it has neither Service
	// nor host: the administrator's Secret has the URL.
	Connection registrationv1.Connection
	// Server is the kind of the server.
	Server Server
	// Name of the database, the vhost or the user. The account's name begins with it.
	Name string
	// Purpose is a part of the connection Secret's name: <owner>-<purpose>-<hash>.
	Purpose string
	// Key of the account's password in the Secret of credentials.
	Key string
}

// Server is the kind of a server: Database, MessageBus, Identity or Catalog. Each has its own
// objects, such as a vhost and its user.
type Server interface {
	// kind begins the reasons of conditions, such as DatabaseUnreachable.
	kind() string
	// locator is the key with the server's address in a connection Secret.
	locator() string
	// given returns the required keys of a given connection Secret: those of one of the alternatives.
	given() [][]string
	// parse returns an error if no service can use a connection Secret.
	parse(secret map[string][]byte) error
	// settings returns the keys of the connection Secret that are specific to the kind.
	settings(Account, engine.Inputs) (map[string]string, error)
	// connect logs in as the administrator. It returns the objects of the account in the
	// order of their creation.
	connect(context.Context, Account, engine.Inputs) (objects []remoteObject, disconnect func(), err error)
	// remains describes the objects that remain if nothing can be removed.
	remains(Account) string
}

// remoteObject is an object at a server, for example a user.
type remoteObject struct {
	name   string
	ensure func() error
	remove func() error // nil: the object is retained
	absent func() (bool, error)
}

// inputs are the Secrets and the Service that the first stage waits for.
func (a Account) inputs() []engine.Need {
	if given := a.Connection.ConnectionSecretRef; given != nil {
		return []engine.Need{engine.SecretWithAny(given.Name, a.Server.given()...)}
	}
	admin := a.Connection.AdminSecretRef.Name
	needs := []engine.Need{
		engine.AnyOf(engine.Secret(admin, config.KeyUser), engine.Secret(admin, config.KeyUsername)),
		engine.Secret(admin, config.KeyPassword),
	}
	switch {
	case a.Connection.ServiceRef != nil:
		return append(needs, a.serviceNeed())
	case a.Connection.Host != "":
		return needs
	}
	return append(needs, engine.Secret(admin, a.Server.locator()))
}

func (a Account) serviceNeed() engine.Need {
	return engine.Existing(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: a.Connection.ServiceRef.Name}})
}

// needs of a stage that registers or uses the account.
func (a Account) needs() []engine.Need {
	if a.Connection.Given() {
		return a.inputs()
	}
	return append(a.inputs(), engine.Cluster(), engine.Secret(credentialsName(a.Owner), a.Key))
}

// teardownNeeds are the needs of the stage that removes the account. They are optional: the
// stage ends if an object that it needs no longer exists.
func (a Account) teardownNeeds() []engine.Need {
	if a.Connection.Given() {
		return nil
	}
	needs := []engine.Need{engine.Cluster(), engine.Secret(a.Connection.AdminSecretRef.Name).Optional()}
	if a.Connection.ServiceRef != nil {
		needs = append(needs, a.serviceNeed().Optional())
	}
	return needs
}

// diagnosisNeeds are the needs of a call that uses the account if it is known.
func (a Account) diagnosisNeeds() []engine.Need {
	if given := a.Connection.ConnectionSecretRef; given != nil {
		return []engine.Need{engine.Secret(given.Name).Optional()}
	}
	return append(a.teardownNeeds(), engine.Secret(credentialsName(a.Owner)).Optional())
}

// check waits if no service can use the given connection Secret. It builds nothing. The
// stage runs again when the Secret changes.
func (a Account) check(in engine.Inputs) ([]engine.Child, error) {
	if given := a.Connection.ConnectionSecretRef; given != nil {
		return nil, a.unusable(a.Server.parse(in.Secret(given.Name)))
	}
	return nil, nil
}

// unusable adds the name of the given connection Secret to the error of its content.
func (a Account) unusable(err error) error {
	if given := a.Connection.ConnectionSecretRef; given != nil && err != nil {
		return engine.Wait("Secret %s: %s", given.Name, err)
	}
	return err
}

// ensure registers the account.
func (a Account) ensure(ctx context.Context, in engine.Inputs) error {
	return a.use(ctx, in, func(objects []remoteObject) error {
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
func (a Account) remove(ctx context.Context, in engine.Inputs) error {
	admin, service := a.Connection.AdminSecretRef, a.Connection.ServiceRef
	remains := a.Server.remains(a) + " at "
	switch {
	case service != nil:
		remains += "Service " + service.Name
	case a.Connection.Host != "":
		remains += a.hostText()
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
	err := a.use(ctx, in, removeAll)
	if err != nil && a.Owner.GetAnnotations()[commonv1.AnnotationAbandon] == "true" {
		return engine.Abandon("%s: %s", remains, err)
	}
	return err
}

// located adds to the error of a server that does not answer where its address is stated, unless the
// spec has it.
func (a Account) located(err error) error {
	var unreachable *remote.Unreachable
	if a.Connection.ServiceRef != nil || a.Connection.Host != "" || !errors.As(err, &unreachable) {
		return err
	}
	return fmt.Errorf("key %s of Secret %s: %w", a.Server.locator(), a.Connection.AdminSecretRef.Name, err)
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

// use logs in and calls do with the objects of the registration.
func (a Account) use(ctx context.Context, in engine.Inputs, do func([]remoteObject) error) error {
	objects, disconnect, err := a.Server.connect(ctx, a, in)
	if err != nil {
		return failure(a.Server.kind(), a.located(err))
	}
	defer disconnect()
	return failure(a.Server.kind(), do(objects))
}

// failure adds the reason of the condition to the error of a server. The call is retried,
// because no event in the cluster announces that it would succeed.
func failure(kind string, err error) error {
	var unreachable *remote.Unreachable
	var denied *remote.Denied
	var conflict *remote.Conflict
	var missing *remote.Missing
	switch {
	case errors.As(err, &missing):
		return engine.Fail("DatabaseNotCopied", err) // nothing else is required to exist
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
func (a Account) Secret(in engine.Inputs) (string, []engine.Child, error) {
	if given := a.Connection.ConnectionSecretRef; given != nil {
		return given.Name, nil, nil
	}
	data, err := a.connection(in)
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
	name := a.Owner.GetName() + "-" + a.Purpose + "-" + hex.EncodeToString(sum[:4])
	return name, []engine.Child{engine.Lingering(applycorev1.Secret(name, "").WithImmutable(true).WithData(data))}, nil
}

// connection returns the data of the connection Secret.
func (a Account) connection(in engine.Inputs) (map[string][]byte, error) {
	if given := a.Connection.ConnectionSecretRef; given != nil {
		return in.Secret(given.Name), nil
	}
	settings, err := a.Server.settings(a, in)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{config.KeyUser: []byte(a.user()), config.KeyPassword: []byte(a.password(in))}
	for key, value := range settings {
		data[key] = []byte(value)
	}
	for _, key := range []string{config.KeyTLS, config.KeyCA} {
		if value := in.Secret(a.Connection.AdminSecretRef.Name)[key]; len(value) > 0 {
			data[key] = value
		}
	}
	return data, nil
}

// Authority returns the certificate authority that verifies the server, nil without TLS.
func (a Account) Authority(in engine.Inputs) ([]byte, error) {
	data, err := a.connection(in)
	if err != nil {
		return nil, err
	}
	ca, err := config.ParseAuthority(data)
	return ca, a.unusable(err)
}

// mark returns the ownership mark of the objects at the server.
func (a Account) mark(in engine.Inputs) remote.Mark {
	return remote.NewMark(in.Cluster(), a.Owner.GetNamespace(), a.Owner.GetName())
}

// user returns the name of the account at the server. It ends in six hex digits of a hash of the owner's
// UID, so that the name is unique.
func (a Account) user() string {
	sum := sha256.Sum256([]byte(a.Owner.GetUID()))
	return a.Name + "_" + hex.EncodeToString(sum[:3])
}

func (a Account) password(in engine.Inputs) config.Password {
	return config.Password(in.Secret(credentialsName(a.Owner))[a.Key])
}

func (a Account) administrator(in engine.Inputs) (config.Administrator, error) {
	name := a.Connection.AdminSecretRef.Name
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
