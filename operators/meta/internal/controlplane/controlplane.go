// Package controlplane says what a ControlPlane is made of.
package controlplane

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes/status,verbs=patch
// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novas,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Service is the table of contents of a ControlPlane. All knowledge of compute
// is behind the Nova; what is made here crosses a product's border.
var Service = engine.Service[*metav1alpha1.ControlPlane]{
	Name: "meta",
	Stages: []engine.Stage[*metav1alpha1.ControlPlane]{
		{Condition: metav1alpha1.ConditionInputsReady, Build: metadataSecret},
		{Condition: metav1alpha1.ConditionNovaReady, Build: nova, Report: report, Continue: true},
	},
	Teardown: []engine.Stage[*metav1alpha1.ControlPlane]{
		{Condition: "NovaRemoved", Build: withoutNova},
	},
	Available: func(cr *metav1alpha1.ControlPlane) []engine.Need {
		return []engine.Need{engine.Condition(&novav1.Nova{ObjectMeta: named(cr.Name)}, commonv1.ConditionAvailable)}
	},
	Owns: []client.Object{&corev1.Secret{}, &novav1.Nova{}},
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func metadataSecretName(cr *metav1alpha1.ControlPlane) string { return cr.Name + "-metadata" }

// metadataSecret is what Nova's metadata service and Neutron's agent share.
func metadataSecret(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Generated(applycorev1.Secret(metadataSecretName(cr), ""), config.KeySharedSecret)}, nil
}

func nova(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{&novav1.Nova{
		ObjectMeta: named(cr.Name),
		Spec: novav1.NovaSpec{
			ContainerImage:    cr.Spec.ContainerImage,
			Database:          cr.Spec.Database,
			MessageBus:        cr.Spec.MessageBus,
			Identity:          cr.Spec.Identity,
			MetadataSecretRef: &commonv1.SecretReference{Name: metadataSecretName(cr)},
			NovaTemplate:      cr.Spec.Nova,
		},
	}}, nil
}

func report(cr *metav1alpha1.ControlPlane, in engine.Inputs) {
	status := &metav1alpha1.NovaStatus{Name: cr.Name, Ready: metav1.ConditionUnknown}
	if made, ok := engine.Get[*novav1.Nova](in, cr.Name); ok {
		status.ReadyCells, status.Endpoints = made.Status.ReadyCells, made.Status.Endpoints
		if ready := meta.FindStatusCondition(made.Status.Conditions, commonv1.ConditionReady); ready != nil && made.Status.ObservedGeneration == made.Generation {
			status.Ready = ready.Status
		}
	}
	cr.Status.Nova = status
}

func withoutNova(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(&novav1.Nova{ObjectMeta: named(cr.Name)})}, nil
}
