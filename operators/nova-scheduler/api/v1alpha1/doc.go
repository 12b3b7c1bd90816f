// Package v1alpha1 holds the kind NovaScheduler: the compute scheduler.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
