package v1alpha1

// RolloutMode defines whether the pods follow the spec.
// +kubebuilder:validation:Enum=Automatic;Held
type RolloutMode string

const (
	// RolloutAutomatic rolls out the pods when the image or the configuration changes.
	RolloutAutomatic RolloutMode = "Automatic"
	// RolloutHeld syncs the schema and does not change the pods.
	RolloutHeld RolloutMode = "Held"
)
