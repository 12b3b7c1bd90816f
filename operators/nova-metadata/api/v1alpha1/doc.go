// Package v1alpha1 contains the kind NovaMetadata, which runs the metadata API.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
