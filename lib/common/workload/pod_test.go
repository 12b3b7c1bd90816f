package workload

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// TestEveryContainerHasRequests: a ResourceQuota counts, and a scheduler places, only what pods
// request.
func TestEveryContainerHasRequests(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	memory := func(amount string) *corev1.ResourceList {
		return &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse(amount)}
	}
	for name, c := range map[string]struct {
		wsgi     *WSGI
		stated   corev1.ResourceRequirements
		requests *corev1.ResourceList
	}{
		"a process":        {nil, corev1.ResourceRequirements{}, memory("128Mi")},
		"three processes":  {&WSGI{Settings: commonv1.WSGISettings{Workers: new(int32(3))}}, corev1.ResourceRequirements{}, memory("384Mi")},
		"stated requests":  {nil, corev1.ResourceRequirements{Requests: cpu("2")}, new(cpu("2"))},
		"stated limits":    {nil, corev1.ResourceRequirements{Limits: cpu("2")}, nil}, // requests are the limits
		"stated emptiness": {nil, corev1.ResourceRequirements{Requests: corev1.ResourceList{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), thing(false)
			s.WSGI, s.Spec.Resources = c.wsgi, c.stated
			pod := podOf(t, s)
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				got := container.Resources.Requests
				if c.requests == nil {
					g.Expect(got).To(BeEmpty())
					continue
				}
				g.Expect(got).To(HaveLen(len(*c.requests)))
				for resource, amount := range *c.requests {
					g.Expect(got[resource].Equal(amount)).To(BeTrue(), "%s: %v", resource, got[resource])
				}
			}
		})
	}
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
