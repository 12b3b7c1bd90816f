package workload

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/util/intstr"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
)

// Service describes one instance of an OpenStack service.
type Service struct {
	// Name of the service, as in the engine.Service: nova-scheduler.
	Name string
	// Instance is the name of the object; everything is named after it.
	Instance string
	// Project whose configuration the service reads in /etc/<Project>; its table
	// of options is config.ProjectOptions.
	Project string
	// Spec is what the user says.
	Spec commonv1.ServiceSpec
	// Defaults are the options that the operator sets and the user may change.
	Defaults config.Sections

	// Databases, each with the section that it is for.
	Databases []Database
	// MessageBus names the Secret with the connection to the message bus.
	MessageBus string
	// Identity says with which sections the service signs in at Keystone.
	Identity Identity
	// Shared are secrets in plain options.
	Shared []SharedSecret
	// FromImage lists files of the image's /etc/<Project> that the service needs.
	FromImage []string

	// Command that becomes the service.
	Command []string
	// Port on which the service listens, if it does.
	Port *Port
	// GraceSeconds that the service gets to finish its work when it is stopped.
	GraceSeconds int64
}

// Database is a connection to a database.
type Database struct {
	// Section of the configuration: database, api_database.
	Section string
	// Secret with the connection.
	Secret string
	// Default name of the database, where the Secret has none.
	Default string
}

// Identity is an account at Keystone and what it is used for.
type Identity struct {
	// Secret with the account; empty: the service does without.
	Secret string
	// AuthToken: the service checks the tokens of its users.
	AuthToken bool
	// Adapters are the sections through which other services are called.
	Adapters []string
}

// SharedSecret is the value of one key sharedSecret in a plain option.
type SharedSecret struct {
	Secret  string
	Section string
	Option  string
}

// Port on which a service is asked over HTTP.
type Port struct {
	Name   string
	Number int32
	// HealthPath answers 200 while the service works, without authentication.
	HealthPath string
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

func (s Service) etc() string   { return path.Join("/etc", s.Project) }
func (s Service) state() string { return path.Join("/var/lib", s.Project) }

func (s Service) configMapName() string   { return s.Instance + "-config-data" }
func (s Service) scriptsName() string     { return s.Instance + "-scripts" }
func (s Service) connectionsName() string { return s.Instance + "-connections" }

func (s Service) replicas() int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

func (p Port) target() intstr.IntOrString { return intstr.FromString(p.Name) }

// Address of the service's port within the cluster.
func (s Service) Address(namespace string) string {
	return fmt.Sprintf("%s:%d", config.ServiceHost(namespace, s.Instance), s.Port.Number)
}
