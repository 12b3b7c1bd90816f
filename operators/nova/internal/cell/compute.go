package cell

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// computeConfigDir is the directory in which a compute host mounts the Secret.
const computeConfigDir = "/etc/nova/nova.conf.d"

func computeConfigName(cr *novav1.NovaCell) string { return cr.Name + "-compute-config" }

// computeConfig builds the Secret with the connections of the cell's compute hosts: message
// bus and accounts. It has no database, because compute hosts use the conductor instead.
func computeConfig(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	_, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	bus, err := config.ParseMessageBus(in.Secret(ofMessageBus))
	if err != nil {
		return nil, engine.Wait("Secret %s: %s", ofMessageBus, err)
	}
	identity, err := config.ParseIdentity(in.Secret(cr.Spec.IdentitySecretRef.Name))
	if err != nil {
		return nil, engine.Wait("Secret %s: %s", cr.Spec.IdentitySecretRef.Name, err)
	}
	connections := config.NewConnections(computeConfigDir)
	connections.MessageBus(bus)
	for _, section := range []string{"placement", "neutron"} {
		connections.Adapter(section, identity)
		connections.Sections.Set(section, "valid_interfaces", "internal")
	}
	connections.ServiceUser(identity)
	data, err := connections.Data()
	if err != nil {
		return nil, engine.Wait("the configuration of the compute hosts cannot be rendered: %s", err)
	}
	return []engine.Child{applycorev1.Secret(computeConfigName(cr), "").WithData(data)}, nil
}

func reportComputeConfig(cr *novav1.NovaCell, _ engine.Inputs) {
	cr.Status.ComputeConfigSecretRef = &commonv1.SecretReference{Name: computeConfigName(cr)}
}
