package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registration returns the AddToScheme function of an API package. The function
// registers the given types (kinds and their lists) in the group and version.
func Registration(version schema.GroupVersion, kinds ...runtime.Object) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(version, kinds...)
		metav1.AddToGroupVersion(scheme, version)
		return nil
	}
}
