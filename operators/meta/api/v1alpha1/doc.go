// Package v1alpha1 holds the kind ControlPlane, which describes a Nova, its shared
// metadata Secret and SharedVolumes.
//
// +kubebuilder:object:generate=true
// +groupName=asterism.dev
package v1alpha1
