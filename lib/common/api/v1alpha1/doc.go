// Package v1alpha1 holds the pieces of spec and status that the kinds of every
// Asterism operator embed. It imports nothing but Kubernetes' API packages, so
// that an operator's API can be imported without its controllers.
//
// +kubebuilder:object:generate=true
package v1alpha1
