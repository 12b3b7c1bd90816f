package backend

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	"asterism.dev/operators/nova/internal/registration"
)

// service returns the Service of the server.
func (b Backend) service(in engine.Inputs) (*corev1.Service, error) {
	name := b.Connection.ServiceRef.Name
	service, ok := engine.Get[*corev1.Service](in, name)
	if !ok {
		return nil, engine.Wait("Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName && !registration.AllowAnyServer {
		return nil, engine.Wait("Service %s is of type ExternalName, which the operator refuses without --allow-any-server: use a Service with endpoints, or host", name)
	}
	return service, nil
}

// address returns the address of the server. For a Service, the port is the first port with
// one of the names, or the first port; for a host, it is the port of the spec, or
// defaultPort.
func (b Backend) address(in engine.Inputs, defaultPort int32, ports ...string) (host string, port int, err error) {
	if b.Connection.Host != "" {
		return b.host(int(ptr.Deref(b.Connection.Port, defaultPort)))
	}
	service, err := b.service(in)
	if err != nil {
		return "", 0, err
	}
	if len(service.Spec.Ports) == 0 {
		return "", 0, engine.Wait("Service %s has no port: add a port", service.Name)
	}
	port, ok := namedPort(service, ports...)
	if !ok {
		port = int(service.Spec.Ports[0].Port)
	}
	return hostname(service), port, nil
}

// host returns the host of the spec, with port.
func (b Backend) host(port int) (string, int, error) {
	host, err := config.ParseHost(b.Connection.Host)
	if err != nil {
		return "", 0, engine.Stop(engine.ReasonInvalid, "host %s %s", b.Connection.Host, err)
	}
	return host, port, nil
}

// hostText is the host of the spec in a message.
func (b Backend) hostText() string {
	if b.Connection.Port == nil {
		return "host " + b.Connection.Host
	}
	return "host " + join(b.Connection.Host, int(*b.Connection.Port))
}

func hostname(service *corev1.Service) string {
	return config.ServiceHost(service.Namespace, service.Name)
}

// namedPort returns the port with the first of the names that a port has.
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
