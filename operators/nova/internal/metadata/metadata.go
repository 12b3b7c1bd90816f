// Package metadata builds the configuration of the metadata agents of Neutron, for the
// metadata service of a Nova or of a cell.
package metadata

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// Keys of the Secret of an Agent, besides config.KeySharedSecret.
const (
	KeyHost     = "host"
	KeyPort     = "port"
	KeyProtocol = "protocol"
)

// Agent is the configuration of the metadata agents that use one metadata service.
type Agent struct {
	// Service is the name of the NovaMetadata.
	Service string
	// SharedSecret is the name of the Secret with which the agents sign their requests.
	SharedSecret string
}

// Named returns the NovaMetadata with only its name.
func Named(name string) *metadatav1.NovaMetadata {
	return &metadatav1.NovaMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (a Agent) secretName() string { return a.Service + "-agent" }

// data returns nil until the NovaMetadata reports its address.
func (a Agent) data(in engine.Inputs) map[string][]byte {
	service, ok := engine.Get[*metadatav1.NovaMetadata](in, a.Service)
	if !ok || len(service.Status.Endpoints) == 0 {
		return nil
	}
	address, err := url.Parse(service.Status.Endpoints[0].URL)
	if err != nil {
		return nil
	}
	return map[string][]byte{
		KeyHost:                []byte(address.Hostname()),
		KeyPort:                []byte(address.Port()),
		KeyProtocol:            []byte(address.Scheme),
		config.KeySharedSecret: in.Secret(a.SharedSecret)[config.KeySharedSecret],
	}
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
