package nova

import (
	"time"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// Processes read the cell mappings once and keep them. So the first time they
// wait until every cell is mapped, or for patience if one is broken; later they
// are restarted when a mapping changes.
const (
	patience = 120 * time.Second
	released = "released"
)

func superconductor0(cr *novav1.Nova) engine.Child { return theSuperconductor(cr) }
func scheduler0(cr *novav1.Nova) engine.Child {
	return &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}
}

func metadata0(cr *novav1.Nova) engine.Child {
	return &metadatav1.NovaMetadata{ObjectMeta: named(metadataName(cr))}
}
func api0(cr *novav1.Nova) engine.Child { return theAPI(cr) }

func theCell(cr *novav1.Nova, cell novav1.Cell) *novav1.NovaCell {
	return &novav1.NovaCell{ObjectMeta: named(cellName(cr, cell))}
}

func theAPI(cr *novav1.Nova) *apiv1.NovaAPI { return &apiv1.NovaAPI{ObjectMeta: named(apiName(cr))} }

func theSuperconductor(cr *novav1.Nova) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(superconductorName(cr))}
}

// release is met when the processes may start, or may be updated: they read the
// databases of the cells, whose schema must be there first.
func release(cr *novav1.Nova) engine.Need {
	var mapped []engine.Need
	for _, cell := range cr.Spec.Cells {
		made := theCell(cr, cell)
		mapped = append(mapped, engine.Condition(made, novav1.ConditionSchemaReady), engine.Condition(made, novav1.ConditionMapped))
	}
	return engine.AnyOf(
		engine.AllOf(mapped...),
		engine.TrueFor(theSuperconductor(cr), conductorv1.ConditionSchemaReady, patience),
	)
}

// superconductorNeeds: its schema Job must run at once, its pods wait.
func superconductorNeeds(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr), release(cr).As(released))
}

func mappedCells(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr), release(cr))
}

// lastTriggers: the superconductor has the triggers of the last restart.
func lastTriggers(cr *novav1.Nova) []engine.Need {
	needs := []engine.Need{engine.Existing(theSuperconductor(cr)).Optional()}
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(theCell(cr, cell)).Optional())
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

// secrets are the names of the connection Secrets that the services get.
type secrets struct{ api, cell0, messageBus, identity commonv1.SecretReference }

func connections(cr *novav1.Nova, in engine.Inputs) (s secrets, err error) {
	for i, name := range []*string{&s.api.Name, &s.cell0.Name, &s.messageBus.Name, &s.identity.Name} {
		if *name, _, err = backends[i](cr).Secret(in); err != nil {
			return s, err
		}
	}
	return s, nil
}

// superconductor brings the API database and cell0 to their schema at once. Its
// pods are held the first time, until the cells are mapped. Here is also the
// Secret with the account at Keystone, because the services that use the account
// need not wait until Keystone answers.
func superconductor(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	s, err := connections(cr, in)
	if err != nil {
		return nil, err
	}
	conductor := theSuperconductor(cr)
	conductor.Spec = conductorv1.NovaConductorSpec{
		ServiceSpec:          service(cr, cr.Spec.Superconductor, in),
		Role:                 conductorv1.RoleSuper,
		APIDatabaseSecretRef: &s.api,
		DatabaseSecretRef:    s.cell0,
		MessageBusSecretRef:  s.messageBus,
		IdentitySecretRef:    &s.identity,
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
	s, err := connections(cr, in)
	return []engine.Child{&schedulerv1.NovaScheduler{
		ObjectMeta: named(schedulerName(cr)),
		Spec: schedulerv1.NovaSchedulerSpec{
			ServiceSpec:          service(cr, cr.Spec.Scheduler, in),
			APIDatabaseSecretRef: s.api,
			DatabaseSecretRef:    s.cell0,
			MessageBusSecretRef:  s.messageBus,
			IdentitySecretRef:    s.identity,
		},
	}}, err
}

func metadata(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	s, err := connections(cr, in)
	return []engine.Child{&metadatav1.NovaMetadata{
		ObjectMeta: named(metadataName(cr)),
		Spec: metadatav1.NovaMetadataSpec{
			ServiceSpec:          service(cr, cr.Spec.Metadata.ServiceTemplate, in),
			Mode:                 metadatav1.MetadataGlobal,
			APIDatabaseSecretRef: s.api,
			DatabaseSecretRef:    s.cell0,
			MessageBusSecretRef:  s.messageBus,
			IdentitySecretRef:    &s.identity,
			MetadataSecretRef:    commonv1.SecretReference{Name: metadataSecret(cr)},
		},
	}}, err
}

func apiNeeds(cr *novav1.Nova) []engine.Need {
	return append(mappedCells(cr), engine.Done(novav1.ConditionIdentityReady))
}

func api(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	s, err := connections(cr, in)
	return []engine.Child{&apiv1.NovaAPI{
		ObjectMeta: named(apiName(cr)),
		Spec: apiv1.NovaAPISpec{
			ServiceSpec:          service(cr, cr.Spec.API.ServiceTemplate, in),
			Exposure:             cr.Spec.API.Exposure,
			APIDatabaseSecretRef: s.api,
			DatabaseSecretRef:    s.cell0,
			MessageBusSecretRef:  s.messageBus,
			IdentitySecretRef:    s.identity,
		},
	}}, err
}

func service(cr *novav1.Nova, template commonv1.ServiceTemplate, in engine.Inputs) commonv1.ServiceSpec {
	spec := template.Spec(cr.Spec.ContainerImage, cr.Spec.Pod)
	spec.RestartTriggers = restartTriggers(cr, in)
	return spec
}
