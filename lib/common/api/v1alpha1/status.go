package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types that every kind has, beside one condition for each stage.
const (
	// ConditionReady is True when every stage is ready for the newest spec. While it is
	// False, it has the reason and the message of the first stage that is not ready. It is
	// Unknown while the object is paused.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, while only a changed spec or input helps.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True while users are served, independent of Ready. Only
	// kinds that serve users have this condition.
	ConditionAvailable = "Available"
)

// Condition types that several kinds share.
const (
	// ConditionInputsReady is True when the Secrets, ConfigMaps and Services of the first
	// stage exist and have the required keys.
	ConditionInputsReady = "InputsReady"
	// ConditionConfigReady is True when the configuration was checked and stored.
	ConditionConfigReady = "ConfigReady"
	// ConditionImageReady is True when the image has the programs, modules and files that the
	// service needs. Its message is a remark about the image, or empty.
	ConditionImageReady = "ImageReady"
	// ConditionWorkloadReady is True when the newest revision of the pods is
	// fully rolled out and available.
	ConditionWorkloadReady = "WorkloadReady"
	// ConditionEndpointReady is True when the addresses of the service are known.
	ConditionEndpointReady = "EndpointReady"
)

// AnnotationAbandon with the value "true" lets the deletion of an object continue although
// its registrations outside the cluster cannot be removed. An event lists what remains.
const AnnotationAbandon = "asterism.dev/abandon"

// Pause is in the spec of every kind for which an operator changes anything.
type Pause struct {
	// paused stops the operator: while it is true, the operator neither changes nor checks
	// anything for this object, and it pauses the objects below this one too. Pods keep
	// running, and deletion works as usual. When paused is removed, the operator applies
	// what has changed meanwhile. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Status has the first fields of the status of every kind.
type Status struct {
	// conditions has one condition for each stage, in the order of the stages; the last
	// condition is Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// completed is an internal record of the operator, not an API: its content can change
	// with any version. It lists the stages that have been complete, and their inputs. If
	// the list is lost, the stages are repeated, which changes nothing.
	// +optional
	// +listType=map
	// +listMapKey=stage
	// +kubebuilder:validation:MaxItems=32
	Completed []CompletedStage `json:"completed,omitempty"`
}

// CompletedStage records the inputs for which a stage was complete.
type CompletedStage struct {
	// stage is the condition of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Stage string `json:"stage"`

	// inputs identifies the inputs and children for which the stage was complete: hashes,
	// or the word outdated or abandoned.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Inputs string `json:"inputs"`

	// generation is the last metadata.generation of this object for which the stage was
	// complete.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// children lists the objects that the stage had applied when it was complete, as
	// kind/name, or kind/namespace/name if this object has no namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	Children []string `json:"children,omitempty"`

	// observed has facts that the stage has read outside the cluster, and no secrets.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Observed map[string]string `json:"observed,omitempty"`
}

// Common returns the part of the status that the engine writes.
func (s *Status) Common() *Status { return s }
