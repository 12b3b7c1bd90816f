package v1alpha1

// WSGISettings are the fields of a service that answers HTTP requests, and of its template in
// the spec of a parent.
type WSGISettings struct {
	// workers is the number of processes of each pod that answer requests, 1 to 64. A process
	// answers as many requests at the same time as threads. Default: the CPU limit of
	// resources, rounded up, at most 8; without a CPU limit 2. A change restarts the pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Workers *int32 `json:"workers,omitempty"`

	// threads is the number of threads of each process, 1 to 32. Default: 1. Releases of
	// the service that use eventlet need 1. The server of an image without uWSGI and Apache
	// ignores threads. A change restarts the pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Threads *int32 `json:"threads,omitempty"`

	// timeoutSeconds is the time in which a request is answered, 10 to 3600. A stopped pod
	// finishes its requests in this time, the liveness probe waits for half of it, at least 30
	// seconds, and a Route, an Ingress or an HTTPRoute for all of it. For the API it is also the default of
	// rpc_response_timeout. Default: 60. A change restarts the pods.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// tlsSecretRef names the Secret of type kubernetes.io/tls with a certificate for the host name
	// of the Service, <name>.<namespace>.svc.cluster.local. The pods then accept only HTTPS. A
	// Route and an Ingress of ingress-nginx connect to them by TLS; configure other controllers
	// and Gateways to do so. The operator and a Route trust the authority in key ca.crt. Default:
	// the pods serve HTTP. A change restarts the pods.
	// +optional
	TLSSecretRef *SecretReference `json:"tlsSecretRef,omitempty"`
}

// DefaultTimeoutSeconds is the time of a service that states none: an answer through
// the message bus takes at most 60 seconds (oslo.messaging: rpc_response_timeout).
const DefaultTimeoutSeconds = 60

// Timeout returns the time in which a request is answered, in seconds.
func (w WSGISettings) Timeout() int64 {
	if w.TimeoutSeconds == nil {
		return DefaultTimeoutSeconds
	}
	return int64(*w.TimeoutSeconds)
}

// Numbers of workers of a service that states none.
const (
	// DefaultWorkers is the number without a CPU limit.
	DefaultWorkers int32 = 2
	// MaxDefaultWorkers bounds the number by the CPU limit.
	MaxDefaultWorkers int64 = 8
)
