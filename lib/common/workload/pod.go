package workload

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/kolla"
	"asterism.dev/lib/common/multus"
)

const (
	annotationConfigHash = "asterism.dev/config-hash"
	readable             = int32(0o444) // any uid must read volumes of the init container
	executable           = int32(0o555)
	// ndots is the number of dots from which a host name is looked up literally before the
	// search list completes it. With the default of Kubernetes, 5, db.example.org is first
	// looked up as db.example.org.svc.cluster.local, a name that the owner of a namespace
	// called org can give to a pod.
	ndots = "2"
)

// pod returns the template of all workloads of the service: the init container merges the
// configuration, and the main container mounts only the result.
func (s Service) pod(r revision, main *applycorev1.ContainerApplyConfiguration) *applycorev1.PodTemplateSpecApplyConfiguration {
	pod := s.podOf(main, s.volumes(r)...)
	pod.Spec.WithInitContainers(s.mergeConfig(r))
	if s.RunOnHost {
		kolla.RunOnHost(pod, scriptsVolume, config.ScriptsDir)
	}
	return pod
}

// servicePod returns the template of the service's own pods.
func (s Service) servicePod(in engine.Inputs, r revision, main *applycorev1.ContainerApplyConfiguration) *applycorev1.PodTemplateSpecApplyConfiguration {
	pod := s.pod(r, main)
	pod.WithAnnotations(map[string]string{annotationConfigHash: s.configHash(in, r)})
	return pod
}

// podOf returns the template of a pod with one container.
func (s Service) podOf(main *applycorev1.ContainerApplyConfiguration, volumes ...*applycorev1.VolumeApplyConfiguration) *applycorev1.PodTemplateSpecApplyConfiguration {
	spec := applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithDNSConfig(applycorev1.PodDNSConfig().WithOptions(applycorev1.PodDNSConfigOption().WithName("ndots").WithValue(ndots))).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(main).
		WithVolumes(volumes...)
	s.place(spec)
	pod := applycorev1.PodTemplateSpec().
		WithLabels(s.Spec.Pod.Labels).
		WithAnnotations(s.Spec.Pod.Annotations).
		WithSpec(spec)
	if networks := s.networks(); networks != nil {
		pod.WithAnnotations(map[string]string{multus.AnnotationNetworks: multus.Networks(networks...)})
	}
	return pod
}

// container returns a container that meets the Pod Security Standard restricted, with any
// uid.
func (s Service) container(name string, command []string) *applycorev1.ContainerApplyConfiguration {
	return applycorev1.Container().
		WithName(name).
		WithImage(s.Image()).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand(command...).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError). // for the condition
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(mount(scriptsVolume, config.ScriptsDir).WithReadOnly(true)).
		WithResources(s.resources())
}

// Requests of a container without resources: the memory of a process, and little CPU, because an
// idle service uses little. Without requests, the scheduler places any number of pods on a node,
// which evicts them first when its memory is used up, and a ResourceQuota for requests refuses
// them. There are no limits, because their right values depend on the cloud.
var (
	requestedCPU    = resource.MustParse("10m")
	requestedMemory = resource.MustParse("128Mi")
)

// resources returns the resources without fields that would be sent as null.
func (s Service) resources() *applycorev1.ResourceRequirementsApplyConfiguration {
	limits, requests := s.Spec.Resources.Limits, s.Spec.Resources.Requests
	resources := applycorev1.ResourceRequirements()
	if limits != nil {
		resources.WithLimits(limits)
	}
	if requests != nil {
		resources.WithRequests(requests)
	}
	if limits == nil && requests == nil {
		memory := requestedMemory
		if s.WSGI != nil {
			memory.Mul(int64(s.Workers()))
		}
		resources.WithRequests(corev1.ResourceList{corev1.ResourceCPU: requestedCPU, corev1.ResourceMemory: memory})
	}
	return resources
}

func (s Service) mergeConfig(r revision) *applycorev1.ContainerApplyConfiguration {
	command := []string{path.Join(config.ScriptsDir, config.MergeConfig), "--project", s.Project.Name}
	for _, file := range s.FromImage {
		command = append(command, "--from-image", file)
	}
	for _, file := range s.Spec.CAFileRefs {
		command = append(command, "--ca-file", file.Key)
	}
	for _, authority := range s.Authorities {
		if len(r.connections.Data[authority.File]) > 0 {
			command = append(command, "--ca-file", authority.File)
		}
	}
	for i, secret := range s.Spec.CustomServiceConfigSecretRefs {
		command = append(command, "--secret-part", config.SecretPart(i, secret.Name))
	}
	c := s.container("merge-config", command).WithVolumeMounts(
		mount(configVolume, config.PartsDir).WithReadOnly(true),
		mount(connectionsVolume, config.ConnectionsDir).WithReadOnly(true),
		mount(mergedVolume, config.MergedDir),
		mount(temporaryVolume, "/tmp"),
	)
	if len(s.extraFiles()) > 0 {
		c = c.WithVolumeMounts(mount(extraVolume, config.ExtraDir).WithReadOnly(true))
	}
	return c
}

// main returns the main container. The merged configuration is in the default directory of
// the service, so that the service's tools in a shell also read it.
func (s Service) main(name string, command []string) *applycorev1.ContainerApplyConfiguration {
	c := s.container(name, command).WithVolumeMounts(
		mount(mergedVolume, s.etc()).WithReadOnly(true),
		mount(stateVolume, s.state()),
		mount(temporaryVolume, "/tmp"),
	)
	if s.Spec.Pod.TrustedCARef != nil {
		bundle := path.Join(s.etc(), trustedCA)
		c.WithEnv( // read by OpenSSL, and by Python's requests
			applycorev1.EnvVar().WithName("SSL_CERT_FILE").WithValue(bundle),
			applycorev1.EnvVar().WithName("REQUESTS_CA_BUNDLE").WithValue(bundle),
		)
	}
	return c
}

func (s Service) volumes(r revision) []*applycorev1.VolumeApplyConfiguration {
	inMemory := applycorev1.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse("16Mi"))
	volumes := []*applycorev1.VolumeApplyConfiguration{
		applycorev1.Volume().WithName(configVolume).WithConfigMap(applycorev1.ConfigMapVolumeSource().
			WithName(*r.parts.Name).WithDefaultMode(readable).WithItems(item(config.DefaultsPart), item(config.CustomPart))),
		scriptsSource(r.scripts),
		applycorev1.Volume().WithName(connectionsVolume).WithSecret(applycorev1.SecretVolumeSource().
			WithSecretName(*r.connections.Name).WithDefaultMode(readable)),
		applycorev1.Volume().WithName(mergedVolume).WithEmptyDir(inMemory),
		applycorev1.Volume().WithName(stateVolume).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
		temporary(),
	}
	if sources := s.extraSources(r); len(sources) > 0 {
		volumes = append(volumes, applycorev1.Volume().WithName(extraVolume).
			WithProjected(applycorev1.ProjectedVolumeSource().WithDefaultMode(readable).WithSources(sources...)))
	}
	return volumes
}

func temporary() *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(temporaryVolume).WithEmptyDir(applycorev1.EmptyDirVolumeSource())
}

func (s Service) extraSources(r revision) []*applycorev1.VolumeProjectionApplyConfiguration {
	var sources []*applycorev1.VolumeProjectionApplyConfiguration
	for _, file := range s.extraFiles() {
		source := applycorev1.VolumeProjection()
		switch {
		case file.ConfigMapKeyRef != nil:
			source.WithConfigMap(applycorev1.ConfigMapProjection().WithName(file.ConfigMapKeyRef.Name).WithItems(itemAs(file.ConfigMapKeyRef.Key, file.Name)))
		case file.SecretKeyRef != nil:
			source.WithSecret(applycorev1.SecretProjection().WithName(file.SecretKeyRef.Name).WithItems(itemAs(file.SecretKeyRef.Key, file.Name)))
		default:
			source.WithConfigMap(applycorev1.ConfigMapProjection().WithName(*r.parts.Name).WithItems(item(file.Name)))
		}
		sources = append(sources, source)
	}
	return sources
}

// place sets the scheduling and the image pull Secrets of the pods.
func (s Service) place(spec *applycorev1.PodSpecApplyConfiguration) {
	pod := s.Spec.Pod
	spec.WithNodeSelector(pod.NodeSelector)
	for _, t := range pod.Tolerations {
		spec.WithTolerations(toleration(t))
	}
	for _, constraint := range pod.TopologySpreadConstraints {
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: engine.Selector(s.Name, s.Instance)}
		}
		spec.WithTopologySpreadConstraints(convert(constraint, applycorev1.TopologySpreadConstraint()))
	}
	if pod.PriorityClassName != "" {
		spec.WithPriorityClassName(pod.PriorityClassName)
	}
	for _, secret := range pod.ImagePullSecrets {
		spec.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(secret.Name))
	}
	if pod.Affinity != nil {
		spec.WithAffinity(affinity(pod.Affinity))
		return
	}
	service := applycorev1.PodAffinityTerm().
		WithTopologyKey(corev1.LabelHostname).
		WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(engine.Selector(s.Name, s.Instance)))
	spec.WithAffinity(applycorev1.Affinity().WithPodAntiAffinity(applycorev1.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(applycorev1.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(service))))
}

// nodeAffinity returns the affinity for a Job: only its nodes. The anti-affinity of the
// service's pods could leave a Job without a node if each node has such a pod.
func (s Service) nodeAffinity() *applycorev1.AffinityApplyConfiguration {
	all := s.Spec.Pod.Affinity
	if all == nil || all.NodeAffinity == nil {
		return nil
	}
	return affinity(&corev1.Affinity{NodeAffinity: all.NodeAffinity})
}

func mount(volume, path string) *applycorev1.VolumeMountApplyConfiguration {
	return applycorev1.VolumeMount().WithName(volume).WithMountPath(path)
}

func item(key string) *applycorev1.KeyToPathApplyConfiguration { return itemAs(key, key) }

func itemAs(key, name string) *applycorev1.KeyToPathApplyConfiguration {
	return applycorev1.KeyToPath().WithKey(key).WithPath(name)
}
