package workload

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/engine"
)

// PerNode builds a service with one pod on each node of s.Node. A pod is ready while its node
// has a connection to the message bus: the pod has the network of its node, so that its probe
// counts the connections of other processes too.
func (s Service) PerNode(in engine.Inputs) ([]engine.Child, error) {
	pod, err := s.connectedPod(in)
	if err != nil {
		return nil, err
	}
	main := &pod.Spec.Containers[0]
	for _, option := range slices.Sorted(maps.Keys(s.Node.Options)) {
		// oslo.config prefers its variables to every file.
		section, name := nodeOption(option)
		main.WithEnv(applycorev1.EnvVar().WithName("OS_" + strings.ToUpper(section+"__"+name)).WithValueFrom(
			applycorev1.EnvVarSource().WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath(s.Node.Options[option]))))
	}
	main.WithPorts(applycorev1.ContainerPort().WithName("reserved").WithContainerPort(s.Node.Reserved).WithHostPort(s.Node.Reserved))
	pod.Spec.WithHostNetwork(true).WithDNSPolicy(corev1.DNSClusterFirstWithHostNet)
	pod.Spec.NodeSelector = maps.Clone(s.Node.Selector)
	for _, directory := range s.Node.Directories {
		s.mountNode(pod.Spec, directory)
	}
	set := applyappsv1.DaemonSet(s.Instance, "").WithSpec(applyappsv1.DaemonSetSpec().
		WithSelector(s.selector()).
		WithUpdateStrategy(applyappsv1.DaemonSetUpdateStrategy().WithType(appsv1.RollingUpdateDaemonSetStrategyType).
			WithRollingUpdate(applyappsv1.RollingUpdateDaemonSet().WithMaxUnavailable(intstr.FromInt32(1)))).
		WithTemplate(pod))
	return []engine.Child{set}, nil
}

// nodeOption returns the section and the name of a key of Node.Options.
func nodeOption(key string) (section, name string) {
	if section, name, stated := strings.Cut(key, "/"); stated {
		return section, name
	}
	return "DEFAULT", key
}

// mountNode mounts a directory of the node in the first container. The directory of the
// service's state replaces the temporary one, and the node sees what the service mounts there.
func (s Service) mountNode(pod *applycorev1.PodSpecApplyConfiguration, directory string) {
	source := applycorev1.HostPathVolumeSource().WithPath(directory).WithType(corev1.HostPathDirectoryOrCreate)
	main := &pod.Containers[0]
	if directory == s.state() {
		for i := range pod.Volumes {
			if *pod.Volumes[i].Name == stateVolume {
				pod.Volumes[i].EmptyDir, pod.Volumes[i].HostPath = nil, source
			}
		}
		for i := range main.VolumeMounts {
			if *main.VolumeMounts[i].Name == stateVolume {
				main.VolumeMounts[i].WithMountPropagation(corev1.MountPropagationBidirectional)
			}
		}
		return
	}
	name := "node-" + strings.ReplaceAll(strings.Trim(path.Clean(directory), "/"), "/", "-")
	pod.WithVolumes(applycorev1.Volume().WithName(name).WithHostPath(source))
	main.WithVolumeMounts(mount(name, directory))
}

// JudgeNodes waits until a node has the labels of s.Node: a DaemonSet without nodes is
// complete.
func (s Service) JudgeNodes(in engine.Inputs) (string, error) {
	set, ok := engine.Get[*appsv1.DaemonSet](in, s.Instance)
	if ok && set.Status.DesiredNumberScheduled == 0 {
		return "", engine.Wait("no node can run a pod of DaemonSet %s: no node has the labels %s, or no pod tolerates their taints", s.Instance, labels.Set(s.Node.Selector))
	}
	return "", nil
}
