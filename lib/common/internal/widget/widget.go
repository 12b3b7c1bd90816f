// Package widget has two kinds for tests of the engine: Widget, and Rack, a child of Widgets.
//
// +kubebuilder:object:generate=true
// +groupName=test.asterism.dev
// +versionName=v1alpha1
package widget

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

//go:generate controller-gen object crd paths=. output:crd:dir=crd

// GroupVersion of both kinds.
var GroupVersion = schema.GroupVersion{Group: "test.asterism.dev", Version: "v1alpha1"}

// AddToScheme registers both kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{}, &Rack{}, &RackList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Spec is the spec of both kinds. The stages of a test interpret it.
type Spec struct {
	commonv1.Pause `json:",inline"`

	// text goes wherever a test needs something to change.
	// +optional
	Text string `json:"text,omitempty"`

	// secretName is a Secret that is needed.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// replicas of the workload.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// parts are the names of further children.
	// +optional
	// +listType=set
	Parts []string `json:"parts,omitempty"`
}

// Widget is a kind with children.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=widgets
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="at most 40 characters"
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec,omitzero"`
	Status Status `json:"status,omitzero"`
}

// Status is the status of both kinds.
type Status struct {
	commonv1.Status `json:",inline"`

	// reported is what a Report wrote.
	// +optional
	Reported string `json:"reported,omitempty"`
}

// Common returns the part of the status that the engine writes.
func (w *Widget) Common() *commonv1.Status { return &w.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (w *Widget) IsPaused() bool { return w.Spec.Paused }

// WidgetList is a list of Widgets.
//
// +kubebuilder:object:root=true
type WidgetList struct { //nolint:revive // lists are named so in Kubernetes
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// Rack is a kind that Widgets have as a child.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=racks
type Rack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec,omitzero"`
	Status Status `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (r *Rack) Common() *commonv1.Status { return &r.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (r *Rack) IsPaused() bool { return r.Spec.Paused }

// RackList is a list of Racks.
//
// +kubebuilder:object:root=true
type RackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rack `json:"items"`
}
