package kolla

import (
	_ "embed"
	"maps"
	"path"
	"slices"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// ServiceAccount is the account of the pods. An administrator creates it in a namespace
	// with the right to use OpenShift's SecurityContextConstraints privileged
	// (config/run-on-host): the rights of no operator suffice.
	ServiceAccount = "asterism-run-on-host"
	// annotationConstraints makes OpenShift refuse the pod, with a reason, instead of
	// trying other SecurityContextConstraints.
	annotationConstraints = "openshift.io/required-scc"
	constraints           = "privileged"

	configName    = "config.json"
	runOnHostName = "run-on-host"
	startName     = "start-kolla"
)

var (
	//go:embed scripts/run-on-host
	runOnHost string
	//go:embed scripts/start-kolla
	start string
)

// HostPrograms returns the paths, in the container, of the programs that RunOnHost replaces:
// those by which os-brick attaches volumes. scsi_id is called by its path, the others by
// name. On the node they may be in any directory of PATH, and scsi_id in udev's.
func HostPrograms() []string {
	return []string{"/usr/sbin/iscsiadm", "/usr/sbin/multipath", "/usr/sbin/multipathd", "/lib/udev/scsi_id"}
}

// Scripts returns the files that RunOnHost mounts: config.json with the command, and two
// scripts.
func Scripts(command []string) (map[string]string, error) {
	config, err := Config{Command: command}.JSON()
	if err != nil {
		return nil, err
	}
	return map[string]string{configName: config, runOnHostName: runOnHost, startName: start}, nil
}

// RunOnHost changes a pod whose first container has a command and mounts the volume, of
// executable files with those of Scripts, at directory:
//   - HostPrograms of the container are the programs of the node;
//   - an image with kolla's entry point starts by it, any other image by the command;
//   - the container is privileged, its root file system is writable, and the pod shares
//     the PID namespace of its node and has the account ServiceAccount. The owner of
//     the container controls the node.
//
// The user of the image stays: programs of the node are run by root, for example by the
// rootwrap of the service. Other containers, network and volumes stay as they are. For
// os-brick, the caller adds /dev and other directories of the node.
func RunOnHost(pod *applycorev1.PodTemplateSpecApplyConfiguration, volume, directory string) {
	pod.WithAnnotations(map[string]string{annotationConstraints: constraints})
	pod.Spec.WithHostPID(true).WithServiceAccountName(ServiceAccount)
	if pod.Spec.SecurityContext != nil {
		pod.Spec.SecurityContext.RunAsNonRoot = nil // the user of kolla's images has a name, which the kubelet cannot verify
	}
	main := &pod.Spec.Containers[0]
	main.Command = slices.Concat([]string{path.Join(directory, startName)}, main.Command)
	main.SecurityContext = applycorev1.SecurityContext().WithPrivileged(true)
	main.WithEnv(applycorev1.EnvVar().WithName(StrategyVariable).WithValue(CopyAlways))
	mounts := map[string]string{ConfigPath: configName}
	for _, program := range HostPrograms() {
		mounts[program] = runOnHostName
	}
	for _, at := range slices.Sorted(maps.Keys(mounts)) {
		main.WithVolumeMounts(applycorev1.VolumeMount().
			WithName(volume).WithMountPath(at).WithSubPath(mounts[at]).WithReadOnly(true))
	}
}
