package workload

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/multus"
)

// networks returns the networks to which the pods are attached. Pods with the network of
// their node have no other network.
func (s Service) networks() []string {
	if s.Node != nil {
		return nil
	}
	var names []string
	for _, network := range s.Spec.Pod.NetworkAttachments {
		names = append(names, network.Name)
	}
	return names
}

// networkNeeds are the pods, for their addresses, and the definitions of their networks: a pod
// whose network is not defined never starts.
func (s Service) networkNeeds() []engine.Need {
	var needs []engine.Need
	for _, name := range s.networks() {
		needs = append(needs, engine.Existing(&multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	if needs != nil {
		needs = append([]engine.Need{s.pods().Need}, needs...)
	}
	return needs
}

func (s Service) pods() engine.List[*corev1.Pod] {
	return engine.Labelled[*corev1.Pod](engine.Selector(s.Name, s.Instance))
}

// attachable returns the pods of the service that are not being deleted, without those of its
// Jobs, and those that have ended: an evicted pod remains as Failed.
func (s Service) attachable(in engine.Inputs) []*corev1.Pod {
	return slices.DeleteFunc(s.pods().In(in), func(pod *corev1.Pod) bool {
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		return ended || pod.DeletionTimestamp != nil || pod.Labels[batchv1.JobNameLabel] != ""
	})
}

// JudgeNetworks waits until each pod is attached to each of its networks.
func (s Service) JudgeNetworks(in engine.Inputs) (string, error) {
	for _, network := range s.networks() {
		for _, pod := range s.attachable(in) {
			if _, attached := multus.Attached(pod, network); !attached {
				return "", engine.Wait("Pod %s is not attached to network %s, according to its annotation %s: check that Multus runs on node %s",
					pod.Name, network, multus.AnnotationStatus, pod.Spec.NodeName)
			}
		}
	}
	return "", nil
}

// attachments returns the addresses of the pods by network.
func (s Service) attachments(in engine.Inputs) []commonv1.NetworkAttachmentStatus {
	var all []commonv1.NetworkAttachmentStatus
	for _, network := range s.networks() {
		row := commonv1.NetworkAttachmentStatus{Name: network}
		for _, pod := range s.attachable(in) {
			addresses, _ := multus.Attached(pod, network)
			row.Addresses = append(row.Addresses, addresses...)
		}
		slices.Sort(row.Addresses)
		row.Addresses = slices.Compact(row.Addresses)
		row.Addresses = row.Addresses[:min(len(row.Addresses), commonv1.MaxNetworkAddresses)]
		all = append(all, row)
	}
	return all
}
