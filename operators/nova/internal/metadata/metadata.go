// Package metadata builds the configuration of the metadata agents of Neutron, for the
// metadata service of a Nova or of a cell.
package metadata

import (
	"cmp"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// Keys of the Secret of an Agent, besides config.KeySharedSecret, and config.KeyCA for a service
// whose certificate is from an authority of its own. The public ones are for agents outside the
// cluster, and absent while nothing exposes the service.
const (
	KeyHost           = "host"
	KeyPort           = "port"
	KeyProtocol       = "protocol"
	KeyPublicHost     = "publicHost"
	KeyPublicPort     = "publicPort"
	KeyPublicProtocol = "publicProtocol"
)

// Agent is the configuration of the metadata agents that use one metadata service.
type Agent struct {
	// Service is the name of the NovaMetadata.
	Service string
	// SharedSecret is the name of the Secret with which the agents sign their requests.
	SharedSecret string
	// Certificate is the Secret with the certificate of the service, nil if it serves HTTP.
	Certificate *commonv1.SecretReference
}

// Needs are the optional needs of the Secret of the agents, beside the NovaMetadata.
func (a Agent) Needs() []engine.Need {
	if a.Certificate == nil {
		return nil
	}
	return []engine.Need{engine.Secret(a.Certificate.Name).Optional()}
}

// Named returns the NovaMetadata with only its name.
func Named(name string) *metadatav1.NovaMetadata {
	return &metadatav1.NovaMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (a Agent) secretName() string { return a.Service + "-agent" }

// data returns nil until the NovaMetadata reports its address.
func (a Agent) data(in engine.Inputs) map[string][]byte {
	service, ok := engine.Get[*metadatav1.NovaMetadata](in, a.Service)
	if !ok {
		return nil
	}
	internal, public := address(service, commonv1.InterfaceInternal), address(service, commonv1.InterfacePublic)
	if internal == nil {
		return nil
	}
	data := map[string][]byte{
		KeyHost:                []byte(internal.Hostname()),
		KeyPort:                []byte(port(internal)),
		KeyProtocol:            []byte(internal.Scheme),
		config.KeySharedSecret: in.Secret(a.SharedSecret)[config.KeySharedSecret],
	}
	if a.Certificate != nil && len(in.Secret(a.Certificate.Name)[config.KeyCA]) > 0 {
		data[config.KeyCA] = in.Secret(a.Certificate.Name)[config.KeyCA]
	}
	if public != nil {
		data[KeyPublicHost] = []byte(public.Hostname())
		data[KeyPublicPort] = []byte(port(public))
		data[KeyPublicProtocol] = []byte(public.Scheme)
	}
	return data
}

// address of the service, nil if it has none.
func address(service *metadatav1.NovaMetadata, of commonv1.EndpointInterface) *url.URL {
	found, err := url.Parse(commonv1.URLOf(service.Status.Endpoints, of))
	if err != nil || found.Host == "" {
		return nil
	}
	return found
}

// port of an address: the agents do not know the default of a scheme.
func port(address *url.URL) string {
	return cmp.Or(address.Port(), map[string]string{"http": "80", "https": "443"}[address.Scheme])
}

// Secret builds the Secret of the agents, as soon as the NovaMetadata reports its address.
func (a Agent) Secret(in engine.Inputs) []engine.Child {
	data := a.data(in)
	if data == nil {
		return nil
	}
	return []engine.Child{applycorev1.Secret(a.secretName(), "").WithData(data)}
}

// Status describes the Secret, nil until it is built.
func (a Agent) Status(in engine.Inputs) *novav1.MetadataAgent {
	data := a.data(in)
	if data == nil {
		return nil
	}
	return &novav1.MetadataAgent{SecretRef: commonv1.SecretReference{Name: a.secretName()}, Hash: in.Hash(data)}
}
