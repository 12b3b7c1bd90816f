package nova

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

// The services of a new release are rolled out in the order that Nova requires: the
// superconductor, the conductors of the cells, scheduler and metadata, and the API (nova doc:
// admin/upgrades). Only another image counts: any other change of a service waits for no other
// service. It waits for the schemas of the mapped cells, unless their servers are down or their
// Secrets are missing: see cellsReadable.

// newImageAfter is met if a service may be updated: it does not exist yet, has its image already, or
// those that must be updated before are ready.
func newImageAfter(service client.Object, image string, before ...engine.Need) engine.Need {
	return engine.AnyOf(engine.Existing(service).Optional().Where(hasImage(image)), engine.AllOf(before...))
}

func hasImage(image string) func(client.Object) error {
	return func(obj client.Object) error {
		if imageOf(obj) != image {
			return engine.Wait("%s still has image %s", obj.GetName(), imageOf(obj))
		}
		return nil
	}
}

// updated are the needs that a service has an image and is ready.
func updated(service engine.Object, image string) []engine.Need {
	return []engine.Need{engine.Existing(service).Where(hasImage(image)), engine.Condition(service, commonv1.ConditionReady)}
}

func imageOf(obj client.Object) string { return specOf(obj).ContainerImage }

// specOf returns the spec of a service; of a cell, that of its conductor, which synchronizes its
// schema.
func specOf(obj client.Object) commonv1.ServiceSpec {
	switch service := obj.(type) {
	case *conductorv1.NovaConductor:
		return service.Spec.ServiceSpec
	case *schedulerv1.NovaScheduler:
		return service.Spec.ServiceSpec
	case *metadatav1.NovaMetadata:
		return service.Spec.ServiceSpec
	case *apiv1.NovaAPI:
		return service.Spec.ServiceSpec
	case *novav1.NovaCell:
		return commonv1.ServiceSpec{ContainerImage: service.Spec.Conductor.ContainerImage, RestartTriggers: service.Spec.RestartTriggers}
	}
	return commonv1.ServiceSpec{}
}

// conductors are the needs of scheduler and metadata: no cell with another image, the
// superconductor, and the conductor of each mapped cell, whose message names the pod that does
// not start.
func conductors(cr *novav1.Nova) []engine.Need {
	needs := []engine.Need{keptCells(cr), engine.Condition(superconductorNamed(cr), commonv1.ConditionReady)}
	for _, cell := range cr.Spec.Cells {
		child := cellNamed(cr, cell)
		needs = append(needs, engine.AnyOf(
			engine.Condition(child, novav1.ConditionConductorReady),
			engine.Existing(child).Optional().Where(isNotMapped),
		))
	}
	return needs
}

// keptCells is met when every mapped cell is in spec.cells. A cell that has left the list keeps its
// image and its schema, which services of another image must not read.
func keptCells(cr *novav1.Nova) engine.Need {
	var gone []engine.Need
	for _, cell := range cr.Status.Cells {
		if !lists(cr, cell.Name) {
			child := &novav1.NovaCell{ObjectMeta: named(cr.Name + "-" + cell.Name)}
			gone = append(gone, engine.Existing(child).Optional().Where(func(obj client.Object) error {
				if isNotMapped(obj) == nil {
					return nil
				}
				return engine.Wait("cell %s is not in spec.cells and keeps its image: remove its servers, and its compute hosts outside this cluster, or add it to spec.cells again", cell.Name)
			}))
		}
	}
	return engine.AllOf(gone...)
}

// superconductorUpdated is the name of the need that the superconductor is ready with its image.
const superconductorUpdated = "superconductor"

// cellRollout holds the pods of a cell's conductor, from the change of its image until the
// superconductor is ready.
func cellRollout(cr *novav1.Nova, cell novav1.Cell, in engine.Inputs) commonv1.RolloutMode {
	child, exists := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
	if exists && !in.Met(superconductorUpdated) &&
		(child.Spec.Rollout == commonv1.RolloutHeld || child.Spec.Conductor.ContainerImage != wantedImage(cr, cell.Conductor)) {
		return commonv1.RolloutHeld
	}
	return commonv1.RolloutAutomatic
}

// wantedImage returns the image of one service.
func wantedImage(cr *novav1.Nova, template commonv1.ServiceTemplate) string {
	return template.WithDefaults(image(cr), cr.Spec.ServiceDefaults).ContainerImage
}

// needsInTurn are the needs of a service of which somebody may have deleted the object: while there is a
// formerImage, imageInTurn waits for them instead of the stage.
func needsInTurn(cr *novav1.Nova, name string, needs ...engine.Need) []engine.Need {
	if formerImage(cr) == "" {
		return needs
	}
	return []engine.Need{engine.AllOf(needs...).As(name)}
}

// imageInTurn returns the image of the spec for a service that may be updated, and an error for one that
// waits. A service that somebody has deleted before its turn comes back with the former image, because
// its users do not wait for the end of the upgrade, or for another image in the spec.
func imageInTurn(cr *novav1.Nova, in engine.Inputs, name string, exists bool, template commonv1.ServiceTemplate) (string, error) {
	former := formerImage(cr)
	switch {
	case former != "" && !exists:
		return former, nil
	case former != "" && !in.Met(name):
		return "", engine.Wait("%s", in.Unmet(name))
	}
	return wantedImage(cr, template), nil
}

func schedulerNeeds(cr *novav1.Nova) []engine.Need {
	update := newImageAfter(schedulerNamed(cr), wantedImage(cr, cr.Spec.Scheduler), append(conductors(cr), reached(cr, novav1.UpgradeServices))...)
	return needsInTurn(cr, schedulerName(cr), append(serviceNeeds(cr), update)...)
}

func apiNeeds(cr *novav1.Nova) []engine.Need {
	before := updated(schedulerNamed(cr), wantedImage(cr, cr.Spec.Scheduler))
	if cr.Spec.Metadata.Mode != novav1.MetadataPerCell {
		before = append(before, updated(metadata.Named(metadataName(cr)), wantedImage(cr, cr.Spec.Metadata.ServiceTemplate))...)
	}
	update := newImageAfter(apiNamed(cr), wantedImage(cr, cr.Spec.API.ServiceTemplate), before...)
	return needsInTurn(cr, apiName(cr), append(serviceNeeds(cr), engine.Done(novav1.ConditionIdentityReady), update)...)
}
