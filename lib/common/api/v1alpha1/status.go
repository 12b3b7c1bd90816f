package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types that every kind has, beside one per stage.
const (
	// ConditionReady is True when every stage is ready for the newest spec.
	// While it is not, it carries reason and message of the first stage that is
	// in the way.
	ConditionReady = "Ready"
	// ConditionStalled is True while nothing but a changed spec can help.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True while users are served, although something
	// else may be broken. Only kinds that serve users have it.
	ConditionAvailable = "Available"
)

// Condition types that several kinds share.
const (
	// ConditionInputsReady is True when every object that the spec names exists
	// and has the keys that are needed.
	ConditionInputsReady = "InputsReady"
	// ConditionConfigReady is True when the configuration was checked and stored.
	ConditionConfigReady = "ConfigReady"
	// ConditionWorkloadReady is True when the newest revision of the pods is
	// fully rolled out and available.
	ConditionWorkloadReady = "WorkloadReady"
	// ConditionEndpointReady is True when the addresses of the service are known.
	ConditionEndpointReady = "EndpointReady"
)

// Status is what the status of every kind starts with.
type Status struct {
	// conditions says how far each stage is, in the order of the stages.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// observedGeneration is the metadata.generation that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// completed is bookkeeping of the operator, and no API: its content can change
	// with any version. It lists the stages that have been complete once for their
	// current inputs. It can be lost: the stages are then repeated, which changes
	// nothing.
	// +optional
	// +listType=map
	// +listMapKey=stage
	// +kubebuilder:validation:MaxItems=32
	Completed []CompletedStage `json:"completed,omitempty"`
}

// CompletedStage records for which inputs a stage was complete.
type CompletedStage struct {
	// stage is the condition of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Stage string `json:"stage"`

	// inputs says what the stage was complete for: hashes, or a word in their place.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Inputs string `json:"inputs"`

	// generation of this object for which the stage was complete last.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// children are what the stage had applied when it was complete: kind and name,
	// with the namespace between them if this object has none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	Children []string `json:"children,omitempty"`

	// observed is what the stage learned outside the cluster; never a secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Observed map[string]string `json:"observed,omitempty"`
}

// Common gives the engine the part of the status that it writes.
func (s *Status) Common() *Status { return s }
