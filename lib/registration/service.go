package registration

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration/remote"
)

// service returns the Service of the server.
func (a Account) service(in engine.Inputs) (*corev1.Service, error) {
	name := a.Connection.ServiceRef.Name
	service, ok := engine.Get[*corev1.Service](in, name)
	if !ok {
		return nil, engine.Wait("Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName && !remote.AllowAnyServer {
		return nil, engine.Wait("Service %s is of type ExternalName, which the operator refuses without --allow-any-server: use a Service with endpoints, or host", name)
	}
	return service, nil
}

// address returns the address of the server. For a Service, the port is the first port with
// one of the names, or the first port; for a host, it is the port of the spec, or
// defaultPort.
func (a Account) address(in engine.Inputs, defaultPort int32, ports ...string) (host string, port int, err error) {
	if a.Connection.Host != "" {
		return a.host(int(ptr.Deref(a.Connection.Port, defaultPort)))
	}
	service, err := a.service(in)
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
func (a Account) host(port int) (string, int, error) {
	host, err := config.ParseHost(a.Connection.Host)
	if err != nil {
		return "", 0, engine.Stop(engine.ReasonInvalid, "host %s %s", a.Connection.Host, err)
	}
	return host, port, nil
}

// hostText is the host of the spec in a message.
func (a Account) hostText() string {
	if a.Connection.Port == nil {
		return "host " + a.Connection.Host
	}
	return "host " + join(a.Connection.Host, int(*a.Connection.Port))
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
