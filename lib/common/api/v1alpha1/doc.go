// Package v1alpha1 defines the parts of spec and status that the kinds of every
// Asterism operator embed. It imports only API packages of Kubernetes, so that the
// API of an operator can be imported without its controllers.
//
// +kubebuilder:object:generate=true
package v1alpha1
