// Package v1alpha1 holds the kinds Nova, a whole compute control plane, and NovaCell, one
// cell of a Nova.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
