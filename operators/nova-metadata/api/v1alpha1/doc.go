// Package v1alpha1 holds the kind NovaMetadata: the metadata API.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
