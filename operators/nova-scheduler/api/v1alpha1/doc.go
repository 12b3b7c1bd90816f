// Package v1alpha1 contains the kind NovaScheduler, which runs the compute scheduler.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
