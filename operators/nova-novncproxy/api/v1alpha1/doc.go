// Package v1alpha1 contains the kind NovaNoVNCProxy, which runs the console proxy of a cell.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
