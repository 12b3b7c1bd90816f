package workload

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// TestRunOnHostChangesNothingMore: the pods with and without the option differ in these
// fields alone. The init container stays restricted.
func TestRunOnHostChangesNothingMore(t *testing.T) {
	g := NewWithT(t)
	want, got := podOf(t, thing(false)), podOf(t, thing(true))
	g.Expect(got).NotTo(Equal(want))

	want.Annotations = map[string]string{"openshift.io/required-scc": "privileged"}
	want.Spec.HostPID = true
	want.Spec.Volumes[1] = got.Spec.Volumes[1] // with the scripts of kolla
	want.Spec.ServiceAccountName = "asterism-run-on-host"
	want.Spec.SecurityContext.RunAsNonRoot = nil
	main := &want.Spec.Containers[0]
	main.Command = []string{"/usr/local/bin/container-scripts/start-kolla", "/usr/local/bin/container-scripts/start-service", "thing", "--debug"}
	main.Env = []corev1.EnvVar{{Name: "KOLLA_CONFIG_STRATEGY", Value: "COPY_ALWAYS"}}
	main.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	for _, at := range [][2]string{
		{"/lib/udev/scsi_id", "run-on-host"},
		{"/usr/sbin/iscsiadm", "run-on-host"},
		{"/usr/sbin/multipath", "run-on-host"},
		{"/usr/sbin/multipathd", "run-on-host"},
		{"/var/lib/kolla/config_files/config.json", "config.json"},
	} {
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "scripts", ReadOnly: true, MountPath: at[0], SubPath: at[1]})
	}
	g.Expect(got).To(Equal(want))
}

func thing(runOnHost bool) Service {
	return Service{Name: "thing", Instance: "x", Project: Project{Name: "thing"}, Command: Start("thing", "--debug"), RunOnHost: runOnHost}
}

func podOf(t *testing.T, s Service) corev1.PodTemplateSpec {
	t.Helper()
	scripts, err := s.scriptsRevision()
	if err != nil {
		t.Fatal(err)
	}
	r := revision{s.immutable(partsName, nil), scripts, applycorev1.Secret("x-connections-1", "")}
	content, err := yaml.Marshal(s.pod(r, s.main(s.Name, s.Command)))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	if err := yaml.Unmarshal(content, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestPodsMountTheKeysOfTheOperator: a key that somebody adds to a ConfigMap reaches no pod. The
// Secret with the connections is read by merge-config, which knows its keys.
func TestPodsMountTheKeysOfTheOperator(t *testing.T) {
	for _, runOnHost := range []bool{false, true} {
		g, s := NewWithT(t), thing(runOnHost)
		s.Spec.CustomServiceConfigSecretRefs = []commonv1.SecretReference{{Name: "mine"}, {Name: "yours"}}
		scripts, err := s.scripts()
		g.Expect(err).NotTo(HaveOccurred())
		pod := podOf(t, s)
		for _, volume := range pod.Spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			var keys []string
			for _, item := range volume.ConfigMap.Items {
				g.Expect(item.Path).To(Equal(item.Key))
				keys = append(keys, item.Key)
			}
			if volume.Name == "scripts" {
				g.Expect(keys).To(Equal(slices.Sorted(maps.Keys(scripts))))
			} else {
				g.Expect(keys).To(Equal([]string{"10-defaults.conf", "90-custom.conf"}))
			}
		}
		g.Expect(pod.Spec.InitContainers[0].Command).To(HaveExactElements(HaveSuffix("/merge-config"),
			"--project", "thing", "--secret-part", "91-mine.secret.conf", "--secret-part", "92-yours.secret.conf"))
	}
}
