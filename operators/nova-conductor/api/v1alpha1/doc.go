// Package v1alpha1 holds the kind NovaConductor: the database schema and the conductor of the superconductor or of one cell.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
