package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
)

// labelPodSecurity is the label of a namespace by which the API server refuses pods.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// explained adds to the message of a workload with privileged pods the label of the
// namespace that refuses them: the status of a StatefulSet or a DaemonSet does not have the
// refusal. The operator needs the right to get namespaces; a RoleBinding gives it for its
// own namespace.
func (s Service) explained(workload engine.Child) engine.Child {
	if !s.RunOnHost {
		return workload
	}
	return engine.Explained(workload, func(ctx context.Context, live client.Reader, obj client.Object) (string, error) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := live.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, namespace); err != nil {
			return "", fmt.Errorf("reading Namespace %s: %w", obj.GetNamespace(), err)
		}
		return refusal(namespace), nil
	})
}

// refusal returns the reason why a namespace refuses privileged pods, "" for no reason. Pod
// Security takes an unknown level for restricted.
func refusal(namespace *metav1.PartialObjectMetadata) string {
	level, enforced := namespace.Labels[labelPodSecurity]
	if !enforced || level == "privileged" {
		return ""
	}
	return fmt.Sprintf("Namespace %s has the label %s=%s, which refuses privileged pods: set the label to privileged", namespace.Name, labelPodSecurity, level)
}
