package v1alpha1

// Probes replace settings of the probes of a service's container. A change restarts the pods.
type Probes struct {
	// readiness decides whether a pod is ready. Default: every 5 seconds, or every 10 seconds
	// for a service without a port; time-out 5 seconds, not ready after 3 failures.
	// +optional
	Readiness *Probe `json:"readiness,omitempty"`

	// liveness restarts the container of an HTTP service that answers nothing. Default: 30
	// seconds, or half of timeoutSeconds if this is longer, as period and as time-out; restarted
	// after 3 failures. Other services have no such probe.
	// +optional
	Liveness *Probe `json:"liveness,omitempty"`

	// startup waits for the start of an HTTP service. Default: every second, time-out 5
	// seconds, restarted after 300 failures. Other services have no such probe.
	// +optional
	Startup *Probe `json:"startup,omitempty"`
}

// Probe has settings of one probe. An absent setting keeps its default.
type Probe struct {
	// periodSeconds is the time between two runs of the probe.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is the time after which a run has failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is the number of failures in succession after which the probe has an
	// effect.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`
}
