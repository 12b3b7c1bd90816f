package nova

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// Processes read the cell mappings once and keep them. So the first time they
// wait until every cell is mapped, or for patience if a cell is broken; later they
// are restarted when a mapping changes.
const (
	patience = 120 * time.Second
	released = "released"
)

func superconductorNamed(cr *novav1.Nova) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(superconductorName(cr))}
}

func schedulerNamed(cr *novav1.Nova) *schedulerv1.NovaScheduler {
	return &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}
}

func metadataNamed(cr *novav1.Nova) *metadatav1.NovaMetadata {
	return &metadatav1.NovaMetadata{ObjectMeta: named(metadataName(cr))}
}

func apiNamed(cr *novav1.Nova) *apiv1.NovaAPI { return &apiv1.NovaAPI{ObjectMeta: named(apiName(cr))} }

func cellNamed(cr *novav1.Nova, cell novav1.Cell) *novav1.NovaCell {
	return &novav1.NovaCell{ObjectMeta: named(cellName(cr, cell))}
}

// release is met when the processes may start, or be updated: they read the
// databases of the mapped cells, whose schema must be that of the wanted release.
// A cell that is not mapped is read by nobody, and is waited for on the first
// deployment only.
func release(cr *novav1.Nova) engine.Need {
	var cells []engine.Need
	for _, cell := range cr.Spec.Cells {
		made := cellNamed(cr, cell)
		cells = append(cells, engine.AnyOf(
			engine.AllOf(engine.Condition(made, novav1.ConditionSchemaReady), engine.Condition(made, novav1.ConditionMapped)),
			engine.AllOf(
				engine.Existing(made).Optional().Where(isNotMapped),
				engine.AnyOf(engine.Existing(superconductorNamed(cr)).Where(isReleased), engine.TrueFor(superconductorNamed(cr), conductorv1.ConditionSchemaReady, patience)),
			),
		))
	}
	return engine.AllOf(cells...)
}

func isNotMapped(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Status.Mapping != nil {
		return engine.Wait("the services read the database of NovaCell %s and wait for its schema", cell.Name)
	}
	return nil
}

// isReleased: the superconductor's pods wait as long as all others.
func isReleased(obj client.Object) error {
	if conductor, ok := obj.(*conductorv1.NovaConductor); ok && conductor.Spec.Rollout != conductorv1.RolloutAutomatic {
		return engine.Wait("spec.rollout of NovaConductor %s is not Automatic yet", conductor.Name)
	}
	return nil
}

// superconductorNeeds: its schema Job must run at once, its pods wait.
func superconductorNeeds(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr), release(cr).As(released), engine.Existing(superconductorNamed(cr)).Optional())
}

// mappedCells, and the API database, are what every service reads.
func mappedCells(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr), engine.Condition(superconductorNamed(cr), conductorv1.ConditionSchemaReady), release(cr))
}

// lastTriggers: the superconductor has the triggers of the last restart.
func lastTriggers(cr *novav1.Nova) []engine.Need {
	needs := []engine.Need{engine.Existing(superconductorNamed(cr)).Optional()}
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(cellNamed(cr, cell)).Optional())
	}
	return needs
}

// restartTriggers change with the mapping of any cell. A cell that does not
// tell keeps its last value, because a restart would not help it.
func restartTriggers(cr *novav1.Nova, in engine.Inputs) map[string]string {
	last := map[string]string{}
	if conductor, ok := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr)); ok {
		last = conductor.Spec.RestartTriggers
	}
	triggers := map[string]string{}
	for _, cell := range cr.Spec.Cells {
		made, ok := engine.Get[*novav1.NovaCell](in, cellName(cr, cell))
		switch {
		case ok && made.Status.Mapping != nil && made.Status.Mapping.Revision != "":
			triggers[string(cell.Name)] = made.Status.Mapping.Revision
		case last[string(cell.Name)] != "":
			triggers[string(cell.Name)] = last[string(cell.Name)]
		}
	}
	return triggers
}

// connections of the services.
func connections(cr *novav1.Nova, in engine.Inputs) (c commonv1.Connections, err error) {
	for i, name := range []*string{&c.APIDatabaseSecretRef.Name, &c.Cell0DatabaseSecretRef.Name, &c.MessageBusSecretRef.Name, &c.IdentitySecretRef.Name} {
		if *name, _, err = backends[i](cr).Secret(in); err != nil {
			return c, err
		}
	}
	return c, nil
}

// superconductor brings the API database and cell0 to their schema at once. Its
// pods are held the first time, until the cells are mapped. Here is also the
// Secret with the account at Keystone, because the services that use the account
// need not wait until Keystone answers.
func superconductor(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	if err != nil {
		return nil, err
	}
	conductor := superconductorNamed(cr)
	conductor.Spec = conductorv1.NovaConductorSpec{
		ServiceSpec:          service(cr, cr.Spec.Superconductor, in),
		Role:                 conductorv1.RoleSuper,
		APIDatabaseSecretRef: &c.APIDatabaseSecretRef,
		DatabaseSecretRef:    c.Cell0DatabaseSecretRef,
		MessageBusSecretRef:  c.MessageBusSecretRef,
		IdentitySecretRef:    &c.IdentitySecretRef,
		Rollout:              conductorv1.RolloutAutomatic,
	}
	made, exists := engine.Get[*conductorv1.NovaConductor](in, conductor.Name)
	running := exists && made.Spec.Rollout == conductorv1.RolloutAutomatic
	if !in.Met(released) && !running {
		conductor.Spec.Rollout = conductorv1.RolloutHeld
	}
	_, account, err := identity(cr).Secret(in)
	return append(account, conductor), err
}

func scheduler(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	return []engine.Child{&schedulerv1.NovaScheduler{
		ObjectMeta: named(schedulerName(cr)),
		Spec: schedulerv1.NovaSchedulerSpec{
			ServiceSpec: service(cr, cr.Spec.Scheduler, in),
			Connections: c,
		},
	}}, err
}

func metadata(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	return []engine.Child{&metadatav1.NovaMetadata{
		ObjectMeta: named(metadataName(cr)),
		Spec: metadatav1.NovaMetadataSpec{
			ServiceSpec:            service(cr, cr.Spec.Metadata.ServiceTemplate, in),
			Mode:                   metadatav1.MetadataGlobal,
			APIDatabaseSecretRef:   c.APIDatabaseSecretRef,
			Cell0DatabaseSecretRef: c.Cell0DatabaseSecretRef,
			MessageBusSecretRef:    c.MessageBusSecretRef,
			IdentitySecretRef:      &c.IdentitySecretRef,
			MetadataSecretRef:      commonv1.SecretReference{Name: metadataSecret(cr)},
		},
	}}, err
}

func apiNeeds(cr *novav1.Nova) []engine.Need {
	return append(mappedCells(cr), engine.Done(novav1.ConditionIdentityReady))
}

func api(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	return []engine.Child{&apiv1.NovaAPI{
		ObjectMeta: named(apiName(cr)),
		Spec: apiv1.NovaAPISpec{
			ServiceSpec: service(cr, cr.Spec.API.ServiceTemplate, in),
			Exposure:    cr.Spec.API.Exposure,
			Connections: c,
		},
	}}, err
}

func service(cr *novav1.Nova, template commonv1.ServiceTemplate, in engine.Inputs) commonv1.ServiceSpec {
	spec := template.Spec(cr.Spec.ContainerImage, cr.Spec.Pod)
	spec.RestartTriggers = restartTriggers(cr, in)
	return spec
}
