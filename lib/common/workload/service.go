package workload

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// Service describes one instance of an OpenStack service.
type Service struct {
	// Name of the service, as in the engine.Service.
	Name string
	// Instance is the name of the object, and the prefix of its children's names.
	Instance string
	// Project is the OpenStack project of the service.
	Project Project
	// Spec is the spec of the object.
	Spec commonv1.ServiceSpec
	// Defaults are options that the operator sets and the user may override.
	Defaults config.Sections

	// Owned are options that the operator sets and the user may not override.
	Owned config.Sections

	// Databases are the connections to databases.
	Databases []Database
	// MessageBus names the Secret with the connection to the message bus; "" with Rendered.
	MessageBus string
	// Rendered names a Secret with rendered connections, see config.Connections.Include. It
	// replaces MessageBus and Identity.
	Rendered string
	// Identity is the account at Keystone.
	Identity Identity
	// Accounts are further accounts at Keystone.
	Accounts []Account
	// SharedConnections are those that services of the project share, nil for none.
	SharedConnections SharedConnections
	// Shared are secrets that are values of options.
	Shared []SharedSecret
	// FromImage lists files of the image's /etc/<project> that the service needs, and
	// directories, with a / at the end, whose files it needs if they exist.
	FromImage []string

	// Authorities are those of servers whose URLs the service reads in a database, beside
	// Spec.CAFileRefs.
	Authorities []Authority

	// CAPrefix is a prefix of the names of CA files, for a service that stores the URLs of its
	// connections in a database; see config.Connections.Store.
	CAPrefix string

	// Command starts a service without WSGI.
	Command []string
	// Scripts are executable files for Command, in config.ScriptsDir.
	Scripts map[string]string
	// WSGI is the application of an HTTP service, nil for none.
	WSGI *WSGI
	// Port is the HTTP port of the service, nil for none.
	Port *Port
	// RunOnHost gives the pods the storage programs of their node; see kolla.RunOnHost. The
	// pods are privileged, and are built only in a namespace with the label that admits them. Jobs
	// of the service are not privileged.
	RunOnHost bool
	// Node describes the nodes of a service with one pod on each node, nil for none. It
	// requires RunOnHost.
	Node *Node
	// GraceSeconds is the time in which the service finishes the work that it has begun when
	// it is stopped. A service with a Port is stopped when all connections have ended, or
	// after this time.
	GraceSeconds int64
}

// Project is an OpenStack project.
type Project struct {
	// Name of the project: its services read their configuration in /etc/<Name>.
	Name string
	// Options are the renamed and the multi-valued options of the project.
	Options config.Options
}

// SharedConnections are connections that only the project knows.
type SharedConnections interface {
	// Needs are the Secrets of the connections.
	Needs() []engine.Need
	// Defaults are options that the user may override. account names the Secret of the
	// service's account at Keystone, "" for none.
	Defaults(account string) config.Sections
	// Connect adds the other options of the connections.
	Connect(c *config.Connections, in engine.Inputs, account string) error
}

// Database is a connection to a database.
type Database struct {
	// Section of the configuration: database, api_database.
	Section string
	// Secret with the connection.
	Secret string
	// Default is the name of the database if the Secret has no name.
	Default string
	// CAName is the name of the connection in config.CAFile; default: Section. Another name leaves
	// the file with the name of Section to Authorities.
	CAName string
}

// Authority is the key ca.crt of a connection Secret, of which the service uses nothing else.
type Authority struct {
	// File is the name of the CA file, which the URL in the database names.
	File   string
	Secret string
}

// Identity is the account of a service at Keystone.
type Identity struct {
	// Secret with the account; "": the service has no account.
	Secret string
	// AuthToken is the service type of an API that validates the tokens of its users, ""
	// for other services.
	AuthToken string
}

// Account is an account at Keystone through which the service calls one other service. The
// key endpoint of the Secret is the URL of that service; default: the URL in the catalog.
type Account struct {
	Section string
	Secret  string
}

// SharedSecret is an option whose value is the key sharedSecret of a Secret.
type SharedSecret struct {
	Secret  string
	Section string
	Option  string
}

// Port is the HTTP port of a service.
type Port struct {
	Name   string
	Number int32
	// HealthPath returns 200 while the service works, without authentication.
	HealthPath string
	// TLSSecret names the Secret with the certificate that the service itself serves, "" for HTTP;
	// see Service.ServeTLS.
	TLSSecret string
}

// TLS tells whether the service itself serves TLS.
func (p Port) TLS() bool { return p.TLSSecret != "" }

// Node is what a service with a pod on each node uses of the nodes. The pods have the network
// of their node.
type Node struct {
	// Selector has the labels of the nodes.
	Selector map[string]string
	// Directories of the node, at the same paths in the container. They are created on a
	// node without them.
	Directories []string
	// Options with fields of the pod as values: host: spec.nodeName. An option of a section
	// other than DEFAULT has the section and a / before its name.
	Options map[string]string
	// Reserved is a port of the node that no process uses: a node runs one pod with this port,
	// of all services and namespaces.
	Reserved int32
}

const (
	configVolume      = "config-data"
	scriptsVolume     = "scripts"
	connectionsVolume = "connections"
	extraVolume       = "extra"
	mergedVolume      = "config-data-merged"
	stateVolume       = "state"
	temporaryVolume   = "tmp"
)

// Ends of the names of the ConfigMaps.
const (
	partsName   = "-config-data"
	scriptsName = "-scripts"
)

// Image returns the image of a spec, or the default image of the operator: the value of
// RELATED_IMAGE_<PROJECT>, "" if the operator has none.
func Image(stated, project string) string {
	return cmp.Or(stated, os.Getenv(imageVariable(project)))
}

func imageVariable(project string) string { return "RELATED_IMAGE_" + strings.ToUpper(project) }

// Image returns the image of the service and of its Jobs.
func (s Service) Image() string { return Image(s.Spec.ContainerImage, s.Project.Name) }

func (s Service) etc() string   { return path.Join("/etc", s.Project.Name) }
func (s Service) state() string { return path.Join("/var/lib", s.Project.Name) }

func (s Service) replicas() int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// health returns the request of the probes. The kubelet accepts any certificate.
func (p Port) health() *applycorev1.HTTPGetActionApplyConfiguration {
	get := applycorev1.HTTPGetAction().WithPath(p.HealthPath).WithPort(p.target())
	if p.TLS() {
		get.WithScheme(corev1.URISchemeHTTPS)
	}
	return get
}

// answers lets a probe send a request, and wait for the answer as long as the probe may. The kubelet
// waits only 10 seconds for a TLS handshake, whatever timeoutSeconds is (its transport has the
// defaults of SetTransportDefaults in k8s.io/apimachinery/pkg/util/net), therefore a command of the
// pod sends the request over TLS.
func (p Port) answers(probe *applycorev1.ProbeApplyConfiguration) {
	if !p.TLS() {
		probe.WithHTTPGet(p.health())
		return
	}
	probe.WithExec(applycorev1.ExecAction().WithCommand(path.Join(config.ScriptsDir, probeTLSName), fmt.Sprint(p.Number), p.HealthPath))
}

func (p Port) target() intstr.IntOrString { return intstr.FromString(p.Name) }

// Address returns the host and port of the service within the cluster.
func (s Service) Address(namespace string) string {
	return fmt.Sprintf("%s:%d", config.ServiceHost(namespace, s.Instance), s.Port.Number)
}
