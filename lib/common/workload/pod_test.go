package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestRunOnHostChangesNothingMore: the pods with and without the option differ in these
// fields alone. The init container stays restricted.
func TestRunOnHostChangesNothingMore(t *testing.T) {
	g := NewWithT(t)
	want, got := template(t, false), template(t, true)
	g.Expect(got).NotTo(Equal(want))

	want.Annotations["openshift.io/required-scc"] = "privileged"
	want.Spec.HostPID = true
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

func template(t *testing.T, runOnHost bool) corev1.PodTemplateSpec {
	t.Helper()
	s := Service{Name: "thing", Instance: "x", Project: "nova", Command: Start("thing", "--debug"), RunOnHost: runOnHost}
	content, err := yaml.Marshal(s.pod("hash", s.main(s.Name, s.Command)))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	if err := yaml.Unmarshal(content, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
