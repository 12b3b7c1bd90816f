// Package v1alpha1 has the fields of custom resources that name a server at which an operator
// registers accounts.
//
// +kubebuilder:object:generate=true
package v1alpha1
