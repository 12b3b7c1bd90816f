package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "storage.asterism.dev", Version: "v1alpha1"}
	// SchemeGroupVersion is GroupVersion under the name that generators expect.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the kinds in this package.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion,
		&SharedVolume{}, &SharedVolumeList{},
		&SharedVolumePolicy{}, &SharedVolumePolicyList{},
		&SharedVolumeDriver{}, &SharedVolumeDriverList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
