package workload

import (
	networkingv1 "k8s.io/api/networking/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// networkPolicy allows connections only to the service's port. A service without a port
// receives its requests through the message bus.
func (s Service) networkPolicy() []engine.Child {
	if s.Spec.Pod.NetworkPolicy == commonv1.NetworkPolicyDisabled {
		return nil
	}
	policy := applynetworkingv1.NetworkPolicySpec().
		WithPodSelector(s.selector()).
		WithPolicyTypes(networkingv1.PolicyTypeIngress)
	if s.Port != nil {
		policy = policy.WithIngress(applynetworkingv1.NetworkPolicyIngressRule().
			WithPorts(applynetworkingv1.NetworkPolicyPort().WithPort(s.Port.target())))
	}
	return []engine.Child{applynetworkingv1.NetworkPolicy(s.Instance, "").WithSpec(policy)}
}
