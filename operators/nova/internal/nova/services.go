package nova

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// The services read the cell mappings only at their start. So the first start waits until
// every cell is mapped, at most mappingTimeout after the schema of the superconductor is
// ready. Later the services restart when a mapping changes.
const (
	mappingTimeout = 120 * time.Second
	rolloutAllowed = "rollout allowed"
)

func superconductorNamed(cr *novav1.Nova) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(superconductorName(cr))}
}

func schedulerNamed(cr *novav1.Nova) *schedulerv1.NovaScheduler {
	return &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}
}

func cellConductorNamed(cr *novav1.Nova, cell novav1.Cell) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(novaCellName(cr, cell) + "-conductor")}
}

func apiNamed(cr *novav1.Nova) *apiv1.NovaAPI { return &apiv1.NovaAPI{ObjectMeta: named(apiName(cr))} }

func cellNamed(cr *novav1.Nova, cell novav1.Cell) *novav1.NovaCell {
	return &novav1.NovaCell{ObjectMeta: named(novaCellName(cr, cell))}
}

// cellsReadable is met when the services may start or be updated. They read the databases of the
// mapped cells, so each of these must have the schema of the image. Of each cell, one of three
// must hold:
//   - it has the schema, and its mapping is up to date or waits for the services;
//   - its database or bus is down, or a Secret is missing, and its conductor has the schema and the
//     image already: until the server or the Secret is back, nothing can change the schema or the
//     mapping. A conductor without its Secret does not report its schema. Then the scheduler, which
//     got its image after the schema, shows that no other image is rolled out;
//   - it is not mapped, so that no service reads its database. The first deployment waits for it
//     all the same, for mappingTimeout; that the scheduler exists tells a later deployment.
func cellsReadable(cr *novav1.Nova) engine.Need {
	var cells []engine.Need
	for _, cell := range cr.Spec.Cells {
		child, conductor, image := cellNamed(cr, cell), cellConductorNamed(cr, cell), wantedImage(cr, cell.Conductor)
		cells = append(cells, engine.AnyOf(
			engine.AllOf(
				engine.Existing(child).Where(hasImage(image)),
				engine.Condition(child, novav1.ConditionSchemaReady),
				engine.AnyOf(engine.Condition(child, novav1.ConditionMapped), engine.Existing(child).Where(awaitsReaders)),
			),
			engine.AllOf(
				engine.Existing(child).Where(isDown),
				engine.Existing(conductor).Where(hasImage(image)),
				engine.AnyOf(
					engine.Condition(conductor, conductorv1.ConditionSchemaReady),
					engine.Existing(schedulerNamed(cr)).Where(hasImage(wantedImage(cr, cr.Spec.Scheduler))),
				),
			),
			engine.AllOf(
				engine.Existing(child).Optional().Where(isNotMapped),
				engine.AnyOf(engine.Existing(schedulerNamed(cr)), engine.TrueFor(superconductorNamed(cr), conductorv1.ConditionSchemaReady, mappingTimeout)),
			),
		))
	}
	return engine.AllOf(cells...)
}

func isNotMapped(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Status.Mapping != nil {
		return waitForSchema(obj)
	}
	return nil
}

// awaitsReaders accepts a cell whose new mapping waits for the services, which the former mapping
// serves meanwhile.
func awaitsReaders(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Status.Mapping != nil && cell.Status.ObservedGeneration == cell.Generation {
		mapped := meta.FindStatusCondition(cell.Status.Conditions, novav1.ConditionMapped)
		if mapped != nil && mapped.Reason == novav1.ReasonAuthorityNotRead {
			return nil
		}
	}
	return waitForSchema(obj)
}

// isDown checks that a cell lacks a Secret, or that a server of the cell does not do what its
// newest spec asks for.
func isDown(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok {
		for _, condition := range []string{novav1.ConditionInputsReady, novav1.ConditionDatabaseReady, novav1.ConditionMessageBusReady} {
			found := meta.FindStatusCondition(cell.Status.Conditions, condition)
			if found != nil && found.Status == metav1.ConditionFalse && found.ObservedGeneration == cell.Generation {
				return nil
			}
		}
	}
	return waitForSchema(obj)
}

func waitForSchema(cell client.Object) error {
	return engine.Wait("the services read the database of NovaCell %s and wait for its schema", cell.GetName())
}

// superconductorNeeds does not wait for release: its schema Job runs first, and the rollout of
// its pods is Held until rolloutAllowed is met. While the scheduler has another image, a new image has
// not reached every service, and no cell that has left the list may be mapped.
func superconductorNeeds(cr *novav1.Nova) []engine.Need {
	noLeftCell := newImageAfter(schedulerNamed(cr), wantedImage(cr, cr.Spec.Scheduler), keptCells(cr))
	return append(lastTriggers(cr), engine.AllOf(cellsReadable(cr), noLeftCell, reached(cr, novav1.UpgradeConductors)).As(rolloutAllowed), engine.Existing(superconductorNamed(cr)).Optional())
}

// serviceNeeds are the needs of every service: the API database and the mapped cells.
func serviceNeeds(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr), engine.Condition(superconductorNamed(cr), conductorv1.ConditionSchemaReady), cellsReadable(cr))
}

// lastTriggers are the needs of every stage with a service: that the image may run and, for
// restartTriggers, the superconductor, which has the triggers of the last restart, and the cells,
// also those that are being removed.
func lastTriggers(cr *novav1.Nova) []engine.Need {
	needs := []engine.Need{admitted(cr), engine.Existing(superconductorNamed(cr)).Optional(), engine.Children()}
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(cellNamed(cr, cell)).Optional())
	}
	return needs
}

// restartTriggers has the revision of the mapping of each cell. A cell without a revision
// keeps its last value, so that it causes no restart.
func restartTriggers(cr *novav1.Nova, in engine.Inputs) map[string]string {
	last := map[string]string{}
	if conductor, ok := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr)); ok {
		last = conductor.Spec.RestartTriggers
	}
	triggers := map[string]string{}
	if release := restartedFor(cr, last); release != "" {
		triggers[releaseTrigger] = release
	}
	for _, cell := range cr.Spec.Cells {
		child, ok := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		switch {
		case ok && child.Status.Mapping != nil && child.Status.Mapping.Revision != "":
			triggers[string(cell.Name)] = child.Status.Mapping.Revision
		case last[string(cell.Name)] != "":
			triggers[string(cell.Name)] = last[string(cell.Name)]
		}
	}
	for _, child := range unlisted(cr, in) {
		if child.Status.Mapping != nil {
			triggers[string(child.Spec.CellName)] = child.Status.Mapping.Revision
		}
	}
	return triggers
}

// caFiles returns the CA files that the mapping of each cell names, or will name. A cell that was
// recreated and is not mapped keeps its last ones: its mapping is still in the API database.
func caFiles(cr *novav1.Nova, in engine.Inputs) (files []commonv1.KeyReference) {
	var last []commonv1.KeyReference
	if conductor, ok := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr)); ok {
		last = conductor.Spec.CAFileRefs
	}
	for _, cell := range cr.Spec.Cells {
		child, ok := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		if ok && (child.Status.Mapping != nil || len(child.Status.CAFileRefs) > 0) {
			files = append(files, child.Status.CAFileRefs...)
			continue
		}
		for _, file := range last {
			if file.Name == novaCellName(cr, cell)+"-database-ca" || file.Name == novaCellName(cr, cell)+"-messagebus-ca" {
				files = append(files, file)
			}
		}
	}
	for _, child := range unlisted(cr, in) {
		if child.Status.Mapping != nil {
			files = append(files, child.Status.CAFileRefs...)
		}
	}
	slices.SortFunc(files, func(a, b commonv1.KeyReference) int { return strings.Compare(a.Key, b.Key) })
	return files
}

// schedulerTriggers are the restartTriggers of the scheduler, which reads only at its start
// in which cells it may place servers.
func schedulerTriggers(cr *novav1.Nova, in engine.Inputs) map[string]string {
	triggers := restartTriggers(cr, in)
	for _, cell := range cr.Spec.Cells {
		child, ok := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		if ok && child.Status.Scheduling == novav1.SchedulingDisabled {
			triggers[string(cell.Name)] += "-disabled"
		}
	}
	return triggers
}

// connections returns the names of the connection Secrets of the services.
func connections(cr *novav1.Nova, in engine.Inputs) (c sharedv1.Connections, err error) {
	for i, name := range []*string{&c.APIDatabaseSecretRef.Name, &c.Cell0DatabaseSecretRef.Name, &c.MessageBusSecretRef.Name, &c.IdentitySecretRef.Name} {
		if *name, _, err = accounts[i](cr).Secret(in); err != nil {
			return c, err
		}
	}
	c.IdentitySecretRef.Name = identityInTurn(cr, in, c.IdentitySecretRef.Name)
	return c, nil
}

// isRegistered is the name of a need that tells whether Keystone has accepted the account.
const isRegistered = "the account is registered at Keystone"

func identityNeeds(cr *novav1.Nova) []engine.Need {
	return []engine.Need{engine.Done(novav1.ConditionIdentityReady).As(isRegistered), engine.Existing(superconductorNamed(cr)).Optional()}
}

// identityInTurn returns the connection Secret of Keystone. Services that run keep their Secret until
// Keystone has accepted the account of the present one: with a wrong address, authority or password,
// they would lose Placement and every other service. New ones start without Keystone. A given account
// is accepted by whoever has registered it.
func identityInTurn(cr *novav1.Nova, in engine.Inputs, present string) string {
	if cr.Spec.Identity.ConnectionSecretRef != nil || in.Met(isRegistered) {
		return present
	}
	running, exists := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr))
	if !exists || running.Spec.IdentitySecretRef == nil {
		return present
	}
	return running.Spec.IdentitySecretRef.Name
}

// superconductor builds the NovaConductor that synchronizes the schemas of the API database
// and cell0 at once. Its pods are held until rolloutAllowed is met, for the first time and for each
// change of the image: the superconductor also writes to the databases of the cells.
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
		SharedConnections:    sharedConnections(cr, in),
		Rollout:              commonv1.RolloutAutomatic,
	}
	child, exists := engine.Get[*conductorv1.NovaConductor](in, conductor.Name)
	running := exists && child.Spec.Rollout == commonv1.RolloutAutomatic && child.Spec.ContainerImage == conductor.Spec.ContainerImage
	if !in.Met(rolloutAllowed) && !running {
		conductor.Spec.Rollout = commonv1.RolloutHeld
	}
	return []engine.Child{conductor}, nil
}

func scheduler(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	_, exists := engine.Get[*schedulerv1.NovaScheduler](in, schedulerName(cr))
	image, err := imageInTurn(cr, in, schedulerName(cr), exists, cr.Spec.Scheduler)
	if err != nil {
		return nil, err
	}
	c, err := connections(cr, in)
	child := &schedulerv1.NovaScheduler{
		ObjectMeta: named(schedulerName(cr)),
		Spec: schedulerv1.NovaSchedulerSpec{
			ServiceSpec:       service(cr, cr.Spec.Scheduler, in),
			Connections:       c,
			SharedConnections: sharedConnections(cr, in),
		},
	}
	child.Spec.ContainerImage, child.Spec.RestartTriggers = image, schedulerTriggers(cr, in)
	return []engine.Child{child}, err
}

func api(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	_, exists := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	image, err := imageInTurn(cr, in, apiName(cr), exists, cr.Spec.API.ServiceTemplate)
	if err != nil {
		return nil, err
	}
	c, err := connections(cr, in)
	child := &apiv1.NovaAPI{
		ObjectMeta: named(apiName(cr)),
		Spec: apiv1.NovaAPISpec{
			ServiceSpec:       service(cr, cr.Spec.API.ServiceTemplate, in),
			WSGISettings:      cr.Spec.API.WSGISettings,
			Exposure:          cr.Spec.API.Exposure,
			Connections:       c,
			SharedConnections: sharedConnections(cr, in),
		},
	}
	child.Spec.ContainerImage = image
	return []engine.Child{child}, err
}

// image returns the image of the services. The Nova passes the default image of its own
// operator on, because the schemas are synchronized before the services restart.
func image(cr *novav1.Nova) string { return workload.Image(cr.Spec.ContainerImage, nova.Name) }

func service(cr *novav1.Nova, template commonv1.ServiceTemplate, in engine.Inputs) commonv1.ServiceSpec {
	spec := template.Spec(image(cr), cr.Spec.ServiceDefaults)
	spec.RestartTriggers, spec.CAFileRefs = restartTriggers(cr, in), caFiles(cr, in)
	return spec
}
