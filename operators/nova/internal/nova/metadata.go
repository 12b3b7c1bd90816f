package nova

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

// cellsServe is the name of the need that each cell has a metadata service that is ready.
const cellsServe = "metadata of the cells"

func agent(cr *novav1.Nova) metadata.Agent {
	return metadata.Agent{Service: metadataName(cr), SharedSecret: metadataSecret(cr), Certificate: cr.Spec.Metadata.TLSSecretRef}
}

func metadataNeeds(cr *novav1.Nova) []engine.Need {
	var cells []engine.Need
	for _, cell := range cr.Spec.Cells {
		child := cellNamed(cr, cell)
		cells = append(cells, engine.Existing(child).Where(hasMetadata), engine.Condition(child, novav1.ConditionMetadataReady))
	}
	update := newImageAfter(metadata.Named(metadataName(cr)), wantedImage(cr, cr.Spec.Metadata.ServiceTemplate), append(conductors(cr), reached(cr, novav1.UpgradeServices))...)
	needs := needsInTurn(cr, metadataName(cr), append(serviceNeeds(cr), update)...)
	needs = append(needs, agent(cr).Needs()...)
	return append(needs, engine.Existing(metadata.Named(metadataName(cr))).Optional(), engine.AllOf(cells...).As(cellsServe))
}

func hasMetadata(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Spec.Metadata == nil {
		return engine.Wait("NovaCell %s has no metadata service", cell.Name)
	}
	return nil
}

// metadataService builds the global NovaMetadata and the Secret of its agents. With a metadata
// service in each cell, it deletes both, when the services of the cells are ready.
func metadataService(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	child := metadata.Named(metadataName(cr))
	_, exists := engine.Get[*metadatav1.NovaMetadata](in, child.Name)
	image, err := imageInTurn(cr, in, child.Name, exists, cr.Spec.Metadata.ServiceTemplate)
	if err != nil {
		return nil, err
	}
	if cr.Spec.Metadata.Mode == novav1.MetadataPerCell && in.Met(cellsServe) {
		return absent(child), nil
	}
	if cr.Spec.Metadata.Mode == novav1.MetadataPerCell && !exists {
		return nil, nil
	}
	c, err := connections(cr, in)
	child.Spec = metadatav1.NovaMetadataSpec{
		ServiceSpec:            service(cr, cr.Spec.Metadata.ServiceTemplate, in),
		WSGISettings:           cr.Spec.Metadata.WSGISettings,
		Exposure:               cr.Spec.Metadata.Exposure,
		SharedConnections:      sharedConnections(cr, in),
		Mode:                   metadatav1.MetadataGlobal,
		APIDatabaseSecretRef:   &c.APIDatabaseSecretRef,
		Cell0DatabaseSecretRef: &c.Cell0DatabaseSecretRef,
		MessageBusSecretRef:    c.MessageBusSecretRef,
		IdentitySecretRef:      &c.IdentitySecretRef,
		MetadataSecretRef:      commonv1.SecretReference{Name: metadataSecret(cr)},
	}
	child.Spec.ContainerImage = image
	return append(agent(cr).Secret(in), child), err
}

func reportMetadata(cr *novav1.Nova, in engine.Inputs) {
	cr.Status.MetadataAgent = nil
	if cr.Spec.Metadata.Mode != novav1.MetadataPerCell {
		cr.Status.MetadataAgent = agent(cr).Status(in)
	}
}
