package cell

import (
	"maps"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"

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
	shared := nova.Compute.Connections(cr.Spec.SharedConnections)
	connections := config.NewConnections(computeConfigDir)
	connections.MessageBus(bus)
	connections.ServiceUser(identity)
	connections.Sections.Set("upgrade_levels", "compute", "auto")
	connections.Sections.SetAll(shared.Defaults(cr.Spec.IdentitySecretRef.Name)) // the hosts have no other file for them
	if err := shared.Connect(connections, in, cr.Spec.IdentitySecretRef.Name); err != nil {
		return nil, err
	}
	if cr.Spec.APIDatabaseAccess == novav1.APIDatabaseAccessDisabled {
		withoutUpcalls(&connections.Sections)
	}
	// The reports of computes about their instances go to the bus of the cell, and no scheduler
	// listens there (nova doc: admin/cells, "Operations requiring upcalls").
	connections.Sections.Set("filter_scheduler", "track_instance_changes", "false")
	showScreens(&connections.Sections, consoleURL(cr, in))
	data, err := connections.Data()
	if err != nil {
		return nil, engine.Wait("the configuration of the compute hosts cannot be rendered: %s", err)
	}
	// No service reads it from a file: a compute in this cluster is removed by the compute API, and
	// so in Nova's own region. The configuration has the regions of the services that Nova calls. If
	// the account does not state its region, that of Placement is more likely than the default.
	if region := in.Secret(cr.Spec.IdentitySecretRef.Name)[config.KeyRegion]; len(region) > 0 {
		data[config.KeyRegion] = region
	}
	return []engine.Child{applycorev1.Secret(computeConfigName(cr), "").WithData(data)}, nil
}

// withoutUpcalls sets the option that a compute needs in a cell whose conductor has no API
// database (nova doc: admin/cells, "Operations requiring upcalls").
func withoutUpcalls(sections *config.Sections) {
	sections.Set("workarounds", "disable_group_policy_check_upcall", "true")
}

func reportComputeConfig(cr *novav1.NovaCell, in engine.Inputs) {
	name := computeConfigName(cr)
	cr.Status.ComputeConfigSecretRef = &commonv1.SecretReference{Name: name}
	if data := maps.Clone(in.Secret(name)); data != nil {
		delete(data, config.KeyRegion) // no compute host reads it
		cr.Status.ComputeConfigHash = in.Hash(data)
	}
}
