package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/lib/common/engine"
)

// labelPodSecurity is the label of a namespace by which the API server refuses pods.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// privileged is the level of labelPodSecurity that admits every pod.
const privileged = "privileged"

// admitPrivileged returns an error unless the namespace admits privileged pods by its label, which
// only administrators can set. Without the label, the API server of most clusters admits them too:
// whoever may write the object of a service could start them in any namespace.
func admitPrivileged(namespace *metav1.PartialObjectMetadata) error {
	level, labelled := namespace.Labels[labelPodSecurity]
	if level == privileged {
		return nil
	}
	state := "has no label " + labelPodSecurity
	if labelled {
		state = "has the label " + labelPodSecurity + "=" + level
	}
	return engine.Wait("Namespace %s %s: ask an administrator to run \"kubectl label namespace %s %s=%s --overwrite\"",
		namespace.Name, state, namespace.Name, labelPodSecurity, privileged)
}
