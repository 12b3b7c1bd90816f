// Package v1alpha1 contains the kind NovaCompute, which runs one compute of a cell.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
