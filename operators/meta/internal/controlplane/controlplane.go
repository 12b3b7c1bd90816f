// Package controlplane has the stages of a ControlPlane.
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
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes/status,verbs=patch
// +kubebuilder:rbac:groups=asterism.dev,resources=controlplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novas,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Service lists the stages of a ControlPlane. It creates the Nova, which creates the compute
// services, the SharedVolumes, and the Secret that Nova shares with Neutron.
var Service = engine.Service[*metav1alpha1.ControlPlane]{
	Name: "meta",
	Stages: []engine.Stage[*metav1alpha1.ControlPlane]{
		{Condition: metav1alpha1.ConditionInputsReady, Needs: inputs, Build: metadataSecret},
		{Condition: metav1alpha1.ConditionNovaReady, Build: nova, Report: reportNova, Continue: true},
		{Condition: metav1alpha1.ConditionSharedVolumesReady, Needs: children, Build: sharedVolumes},
	},
	Teardown: []engine.Stage[*metav1alpha1.ControlPlane]{
		{Condition: "ProductsRemoved", Needs: children, Build: removed},
	},
	Available: &engine.Stage[*metav1alpha1.ControlPlane]{Needs: func(cr *metav1alpha1.ControlPlane) []engine.Need {
		nova := &novav1.Nova{ObjectMeta: named(cr.Name)}
		return []engine.Need{engine.Free(nova), engine.Condition(nova, commonv1.ConditionAvailable)}
	}},
	Report: reportSharedVolumes,
	Owns:   []client.Object{&corev1.Secret{}, &novav1.Nova{}, &storagev1.SharedVolume{}},
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func inputs(cr *metav1alpha1.ControlPlane) []engine.Need {
	if given := cr.Spec.MetadataSecretRef; given != nil {
		return []engine.Need{engine.Secret(given.Name, config.KeySharedSecret)}
	}
	return nil
}

func metadataSecretRef(cr *metav1alpha1.ControlPlane) *commonv1.SecretReference {
	if cr.Spec.MetadataSecretRef != nil {
		return cr.Spec.MetadataSecretRef
	}
	return &commonv1.SecretReference{Name: cr.Name + "-metadata"}
}

// metadataSecret builds the Secret that Nova's metadata service and Neutron's agent share.
// spec.metadataSecretRef may name the Secret that the operator generated before, and so this
// Secret is kept.
func metadataSecret(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	secret := applycorev1.Secret(metadataSecretRef(cr).Name, "")
	if cr.Spec.MetadataSecretRef != nil {
		return []engine.Child{engine.Kept(secret)}, nil
	}
	return []engine.Child{engine.Generated(secret, config.KeySharedSecret)}, nil
}

func nova(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{&novav1.Nova{
		ObjectMeta: named(cr.Name),
		Spec: novav1.NovaSpec{
			ContainerImage:    cr.Spec.ContainerImage,
			NamePrefix:        cr.Spec.NamePrefix,
			Database:          cr.Spec.Database,
			MessageBus:        cr.Spec.MessageBus,
			Identity:          cr.Spec.Identity,
			MetadataSecretRef: metadataSecretRef(cr),
			NovaTemplate:      cr.Spec.Nova,
		},
	}}, nil
}

func reportNova(cr *metav1alpha1.ControlPlane, in engine.Inputs) {
	status := &metav1alpha1.NovaStatus{Name: cr.Name, Ready: metav1.ConditionUnknown, DesiredCells: int32(len(cr.Spec.Nova.Cells))}
	if child, ok := engine.Get[*novav1.Nova](in, cr.Name); ok {
		status.ReadyCells, status.Cells, status.Endpoints = child.Status.ReadyCells, child.Status.Cells, child.Status.Endpoints
		status.MetadataAgent = child.Status.MetadataAgent
		if ready := meta.FindStatusCondition(child.Status.Conditions, commonv1.ConditionReady); ready != nil && child.Status.ObservedGeneration == child.Generation {
			status.Ready = ready.Status
		}
	}
	cr.Status.Nova = status
}

func children(*metav1alpha1.ControlPlane) []engine.Need { return []engine.Need{engine.Children()} }

func sharedVolumes(cr *metav1alpha1.ControlPlane, _ engine.Inputs) ([]engine.Child, error) {
	var all []engine.Child
	for _, wanted := range cr.Spec.SharedVolumes {
		all = append(all, &storagev1.SharedVolume{ObjectMeta: named(wanted.Name), Spec: wanted.SharedVolumeSpec})
	}
	return all, nil
}

// reportSharedVolumes copies status and message of the Ready condition of every SharedVolume
// in the spec. It removes the condition SharedVolumesReady if the spec has none.
func reportSharedVolumes(cr *metav1alpha1.ControlPlane, in engine.Inputs) {
	if !in.KnowsChildren() {
		return
	}
	volumes := map[string]*storagev1.SharedVolume{}
	for _, volume := range engine.ChildrenOf[*storagev1.SharedVolume](in) {
		volumes[volume.Name] = volume
	}
	cr.Status.SharedVolumes = nil
	for _, wanted := range cr.Spec.SharedVolumes {
		status := metav1alpha1.SharedVolumeStatus{Name: wanted.Name, Ready: metav1.ConditionUnknown}
		if volume := volumes[wanted.Name]; volume != nil && volume.Status.ObservedGeneration == volume.Generation {
			if ready := meta.FindStatusCondition(volume.Status.Conditions, commonv1.ConditionReady); ready != nil {
				status.Ready, status.Message = ready.Status, ready.Message
			}
		}
		cr.Status.SharedVolumes = append(cr.Status.SharedVolumes, status)
	}
	conditions := &cr.Status.Conditions
	if len(cr.Spec.SharedVolumes) == 0 && meta.IsStatusConditionTrue(*conditions, metav1alpha1.ConditionSharedVolumesReady) {
		meta.RemoveStatusCondition(conditions, metav1alpha1.ConditionSharedVolumesReady)
	}
}

// removed deletes the Nova and the SharedVolumes at the same time, because pods may use a
// volume for a long time.
func removed(cr *metav1alpha1.ControlPlane, in engine.Inputs) ([]engine.Child, error) {
	all := []engine.Child{engine.Absent(&novav1.Nova{ObjectMeta: named(cr.Name)})}
	for _, volume := range engine.ChildrenOf[*storagev1.SharedVolume](in) {
		all = append(all, engine.Absent(&storagev1.SharedVolume{ObjectMeta: named(volume.Name)}))
	}
	return all, nil
}
