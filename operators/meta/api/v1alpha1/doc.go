// Package v1alpha1 holds the kind ControlPlane: one resource from which the whole product is made.
//
// +kubebuilder:object:generate=true
// +groupName=asterism.dev
package v1alpha1
