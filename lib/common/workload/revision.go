package workload

import (
	"maps"
	"slices"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// revision has the objects that the pods of one template mount. They are immutable, and a hash of
// their content is in their names: an old pod that is replaced while a rollout is broken starts
// with the files of its own template, and a new pod never with old files from the kubelet's cache.
type revision struct {
	parts, scripts *applycorev1.ConfigMapApplyConfiguration
	connections    *applycorev1.SecretApplyConfiguration
}

// revision checks the image, the user's snippet and the names of the files as well.
func (s Service) revision(in engine.Inputs) (revision, error) {
	if s.Image() == "" {
		return revision{}, engine.Stop(engine.ReasonInvalid, "spec.containerImage is not set, and the operator has no default image: set spec.containerImage, or %s in the operator's Deployment", imageVariable(s.Project.Name))
	}
	connections, err := s.connections(in)
	if err != nil {
		return revision{}, err
	}
	if err := config.CheckSnippet(s.Spec.CustomServiceConfig, s.owned(connections)...); err != nil {
		return revision{}, engine.Stop(engine.ReasonInvalid, "spec.customServiceConfig: %s", err)
	}
	if err := s.checkFiles(); err != nil {
		return revision{}, err
	}
	secret, err := connections.Data()
	if err != nil {
		return revision{}, engine.Wait("rendering the connections: %s", err)
	}
	parts, err := s.parts()
	if err != nil {
		return revision{}, err
	}
	scripts, err := s.scriptsRevision()
	return revision{
		parts:       s.immutable(partsName, parts),
		scripts:     scripts,
		connections: applycorev1.Secret(s.Instance+"-connections-"+in.Hash(secret), "").WithImmutable(true).WithData(secret),
	}, err
}

// scriptsRevision returns the part of the revision that needs no Secret.
func (s Service) scriptsRevision() (*applycorev1.ConfigMapApplyConfiguration, error) {
	scripts, err := s.scripts()
	return s.immutable(scriptsName, scripts), err
}

func (s Service) immutable(name string, data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
	return applycorev1.ConfigMap(s.Instance+name+"-"+engine.Hash(data), "").WithImmutable(true).WithData(data)
}

// children returns the objects, which exist until no pod mounts them.
func (r revision) children() []engine.Child {
	return []engine.Child{engine.Lingering(r.parts), engine.Lingering(r.scripts), engine.Lingering(r.connections)}
}

// current returns the ConfigMaps for people, whose names do not change.
func (s Service) current(r revision) []engine.Child {
	return []engine.Child{
		applycorev1.ConfigMap(s.Instance+partsName, "").WithData(r.parts.Data),
		applycorev1.ConfigMap(s.Instance+scriptsName, "").WithData(r.scripts.Data),
	}
}

// scriptsSource lists the scripts, because Python imports any module that is beside its program:
// a key of a ConfigMap that somebody has put in its place must not be one.
func scriptsSource(scripts *applycorev1.ConfigMapApplyConfiguration) *applycorev1.VolumeApplyConfiguration {
	source := applycorev1.ConfigMapVolumeSource().WithName(*scripts.Name).WithDefaultMode(executable)
	for _, name := range slices.Sorted(maps.Keys(scripts.Data)) {
		source.WithItems(item(name))
	}
	return applycorev1.Volume().WithName(scriptsVolume).WithConfigMap(source)
}
