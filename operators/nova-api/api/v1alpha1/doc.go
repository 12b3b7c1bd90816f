// Package v1alpha1 contains the kind NovaAPI, which runs the compute API.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
