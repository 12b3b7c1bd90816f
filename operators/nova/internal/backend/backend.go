// Package backend joins the servers on which accounts are registered with the
// engine: what a stage needs for it, the call that registers, the connection
// Secret that services get, and the call that removes.
//
// Each server is either one on which we register, or one whose connection
// Secret an administrator gives; then there is nothing to register or remove.
package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/registration"
)

// AnnotationAbandon on an object lets its deletion go on although a server is
// unreachable or refuses us: what could not be removed is listed in an event.
const AnnotationAbandon = "asterism.dev/abandon"

// RegisterEvery is how often it is looked whether what was registered is still
// there: nobody tells when a server has lost it.
const RegisterEvery = 10 * time.Minute

// Owner is the object for which accounts are registered.
type Owner struct {
	// Object whose name and namespace mark what is made.
	Object client.Object
	// Credentials is the name of the Secret with the generated passwords.
	Credentials string
}

// Mark is written into everything that is made outside the cluster.
func (o Owner) Mark(in engine.Inputs) registration.Mark {
	return registration.NewMark(in.Cluster(), o.Object.GetNamespace(), o.Object.GetName())
}

// Account makes a name that nobody else has: it ends in six hex digits of the
// owner's UID, so that an account of that name is ours.
func (o Owner) Account(name string) string {
	sum := sha256.Sum256([]byte(o.Object.GetUID()))
	return name + "_" + hex.EncodeToString(sum[:3])
}

// Server is what databases and message buses have in common.
type Server struct {
	Owner      Owner
	Connection novav1.Connection
	// Key of the account's password in the Secret of credentials.
	Key string
}

// Inputs are waited for before anything else.
func (s Server) Inputs() []engine.Need {
	if s.Connection.Given() {
		return []engine.Need{engine.Secret(s.Connection.ConnectionSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword)}
	}
	return append(administratorNeeds(s.Connection.AdminSecretRef.Name), serviceNeed(s.Connection.ServiceRef.Name))
}

// Needs of the stage that registers.
func (s Server) Needs() []engine.Need {
	needs := s.Inputs()
	if !s.Connection.Given() {
		needs = append(needs, engine.Cluster(), engine.Secret(s.Owner.Credentials, s.Key))
	}
	return needs
}

// TeardownNeeds are those of Remove; what is missing cannot be removed.
func (s Server) TeardownNeeds() []engine.Need {
	if s.Connection.Given() {
		return nil
	}
	return []engine.Need{
		engine.Cluster(),
		engine.Secret(s.Connection.AdminSecretRef.Name).Optional(),
		serviceNeed(s.Connection.ServiceRef.Name).Optional(),
	}
}

// check refuses a given Secret that no service could use. Its next version wakes us.
func (s Server) check(in engine.Inputs, parse func(map[string][]byte) error) error {
	if !s.Connection.Given() {
		return nil
	}
	name := s.Connection.ConnectionSecretRef.Name
	if err := parse(in.Secret(name)); err != nil {
		return engine.Wait("Secret %s: %s", name, err)
	}
	return nil
}

func (o Owner) password(in engine.Inputs, key string) config.Password {
	return config.Password(in.Secret(o.Credentials)[key])
}

// administratorNeeds: the Secret may say user or username.
func administratorNeeds(secret string) []engine.Need {
	return []engine.Need{
		engine.AnyOf(engine.Secret(secret, config.KeyUser), engine.Secret(secret, config.KeyUsername)),
		engine.Secret(secret, config.KeyPassword),
	}
}

func serviceNeed(name string) engine.Need {
	return engine.Existing(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// address of a Service's port: the first one that has one of the names, or else
// the first one.
func address(in engine.Inputs, name string, ports ...string) (host string, port int, err error) {
	service, err := theService(in, name)
	if err != nil {
		return "", 0, err
	}
	if len(service.Spec.Ports) == 0 {
		return "", 0, engine.Wait("Service %s has no port", name)
	}
	port, ok := namedPort(service, ports...)
	if !ok {
		port = int(service.Spec.Ports[0].Port)
	}
	return hostname(service), port, nil
}

func theService(in engine.Inputs, name string) (*corev1.Service, error) {
	service, ok := engine.Get[*corev1.Service](in, name)
	if !ok {
		return nil, engine.Wait("Service %s does not exist", name)
	}
	return service, nil
}

func hostname(service *corev1.Service) string {
	return fmt.Sprintf("%s.%s.svc", service.Name, service.Namespace)
}

// namedPort is the first one that has one of the names.
func namedPort(service *corev1.Service, names ...string) (int, bool) {
	for _, name := range names {
		for _, port := range service.Spec.Ports {
			if port.Name == name {
				return int(port.Port), true
			}
		}
	}
	return 0, false
}

func join(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// connectionSecret is immutable and named by its content, so that whoever uses
// it moves to the next one in an orderly way. The old one stays until then.
func connectionSecret(name string, data map[string]string) (string, engine.Child, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(encoded)
	name += "-" + hex.EncodeToString(sum[:4])
	content := map[string][]byte{}
	for key, value := range data {
		content[key] = []byte(value)
	}
	return name, engine.Lingering(applycorev1.Secret(name, "").WithImmutable(true).WithData(content)), nil
}

// failure gives a server's error the reason that a condition shows. All of them
// are tried again, because nothing in the cluster tells when they are over.
func failure(kind string, err error) error {
	var unreachable *registration.Unreachable
	var denied *registration.Denied
	var conflict *registration.Conflict
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		return engine.Fail(engine.ReasonConflict, err)
	case errors.As(err, &denied):
		return engine.Fail(kind+"Denied", err)
	case errors.As(err, &unreachable), errors.Is(err, context.DeadlineExceeded):
		return engine.Fail(kind+"Unreachable", err)
	}
	return err
}

// gone names the administrator's Secret or the Service if it does not exist:
// there is nothing then that could be waited for. One that exists and is wrong
// can be corrected.
func (s Server) gone(in engine.Inputs) string {
	if gone := goneSecret(in, s.Connection.AdminSecretRef.Name); gone != "" {
		return gone
	}
	if _, err := theService(in, s.Connection.ServiceRef.Name); err != nil {
		return "Service " + s.Connection.ServiceRef.Name
	}
	return ""
}

func goneSecret(in engine.Inputs, name string) string {
	if in.Secret(name) == nil {
		return "Secret " + name
	}
	return ""
}

// removal runs the removal of what was registered, or abandons it where the
// means are gone or the user says so.
func removal(owner Owner, left, gone string, remove func() error) error {
	if gone != "" {
		return engine.Abandon("%s: %s does not exist any more", left, gone)
	}
	err := remove()
	if err != nil && owner.Object.GetAnnotations()[AnnotationAbandon] == "true" {
		return engine.Abandon("%s: %s", left, err)
	}
	return err
}
