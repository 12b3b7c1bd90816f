// Package v1alpha1 contains the kind NovaConductor, which syncs the database schema and runs
// the superconductor or the conductor of one cell.
//
// +kubebuilder:object:generate=true
// +groupName=nova.asterism.dev
package v1alpha1
