package cell

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"

	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

func metadataName(cr *novav1.NovaCell) string { return cr.Name + "-metadata" }

// sharedSecretRef names the Secret that the cell's metadata service shares with its agents.
func sharedSecretRef(cr *novav1.NovaCell) commonv1.SecretReference {
	if given := cr.Spec.MetadataSecretRef; given != nil {
		return *given
	}
	return commonv1.SecretReference{Name: metadataName(cr)}
}

func sharedSecretNeeds(cr *novav1.NovaCell) []engine.Need {
	if cr.Spec.Metadata == nil || cr.Spec.MetadataSecretRef == nil {
		return nil
	}
	return []engine.Need{engine.Secret(cr.Spec.MetadataSecretRef.Name, config.KeySharedSecret)}
}

// credentials builds the Secret of the passwords, and the Secret of the metadata service,
// which exists also while the cell has no such service: agents may still use it.
func credentials(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	children, err := registration.Credentials(database, messageBus)(cr, in)
	secret := applycorev1.Secret(metadataName(cr), "")
	if cr.Spec.Metadata == nil || cr.Spec.MetadataSecretRef != nil {
		return append(children, engine.Kept(secret)), err
	}
	return append(children, engine.Generated(secret, config.KeySharedSecret)), err
}

func agent(cr *novav1.NovaCell) metadata.Agent {
	return metadata.Agent{Service: metadataName(cr), SharedSecret: sharedSecretRef(cr).Name, Certificate: cr.Spec.Metadata.TLSSecretRef}
}

func metadataNeeds(cr *novav1.NovaCell) []engine.Need {
	needs := []engine.Need{engine.Existing(metadata.Named(metadataName(cr))).Optional()}
	if cr.Spec.Metadata != nil {
		needs = append(needs, agent(cr).Needs()...)
	}
	return needs
}

// metadataService builds the NovaMetadata of the cell and the Secret of its agents, or deletes
// both.
func metadataService(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	service := metadata.Named(metadataName(cr))
	if cr.Spec.Metadata == nil {
		return []engine.Child{engine.Absent(service)}, nil
	}
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	service.Spec = metadatav1.NovaMetadataSpec{
		ServiceSpec:         cr.Spec.Metadata.Spec("", commonv1.ServiceDefaults{}),
		WSGISettings:        cr.Spec.Metadata.WSGISettings,
		Exposure:            cr.Spec.Metadata.Exposure,
		SharedConnections:   cr.Spec.SharedConnections,
		Mode:                metadatav1.MetadataCell,
		DatabaseSecretRef:   &commonv1.SecretReference{Name: ofDatabase},
		MessageBusSecretRef: commonv1.SecretReference{Name: ofMessageBus},
		IdentitySecretRef:   &cr.Spec.IdentitySecretRef,
		MetadataSecretRef:   sharedSecretRef(cr),
	}
	if running, exists := engine.Get[*metadatav1.NovaMetadata](in, service.Name); exists {
		if err := keepsImage(cr, in, service, running.Spec.ContainerImage, service.Spec.ContainerImage); err != nil {
			return nil, err
		}
	}
	return append(agent(cr).Secret(in), service), nil
}

func reportMetadata(cr *novav1.NovaCell, in engine.Inputs) {
	cr.Status.MetadataAgent = nil
	if cr.Spec.Metadata != nil {
		cr.Status.MetadataAgent = agent(cr).Status(in)
	}
}
