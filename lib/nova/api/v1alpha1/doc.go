// Package v1alpha1 has the fields that the kinds of several Nova operators share.
//
// +kubebuilder:object:generate=true
package v1alpha1
