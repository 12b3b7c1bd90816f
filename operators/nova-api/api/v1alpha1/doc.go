// Package v1alpha1 holds the kind NovaAPI: the compute API.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
