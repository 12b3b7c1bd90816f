package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// What RunOnHost adds to a pod, as a strategic merge would: the main container is the only
// one.
const (
	onHostPod = `
hostPID: true
serviceAccountName: asterism-run-on-host
`
	onHostContainer = `
command: [/usr/local/bin/container-scripts/start-kolla, /usr/local/bin/container-scripts/start-service, thing, --debug]
env: [{name: KOLLA_CONFIG_STRATEGY, value: COPY_ALWAYS}]
securityContext: {privileged: true}
`
	onHostMounts = `
- {name: scripts, readOnly: true, mountPath: /lib/udev/scsi_id, subPath: run-on-host}
- {name: scripts, readOnly: true, mountPath: /usr/sbin/iscsiadm, subPath: run-on-host}
- {name: scripts, readOnly: true, mountPath: /usr/sbin/multipath, subPath: run-on-host}
- {name: scripts, readOnly: true, mountPath: /usr/sbin/multipathd, subPath: run-on-host}
- {name: scripts, readOnly: true, mountPath: /var/lib/kolla/config_files/config.json, subPath: config.json}
`
)

// TestRunOnHostChangesNothingMore: the pods with and without the option differ in these
// fields alone. The init container stays restricted.
func TestRunOnHostChangesNothingMore(t *testing.T) {
	g := NewWithT(t)
	restricted, privileged := fields(t, false), fields(t, true)
	g.Expect(restricted).NotTo(Equal(privileged))

	metadata, spec := restricted["metadata"].(map[string]any), restricted["spec"].(map[string]any)
	metadata["annotations"].(map[string]any)["openshift.io/required-scc"] = "privileged"
	parse(t, onHostPod, &spec)
	delete(spec["securityContext"].(map[string]any), "runAsNonRoot")
	container := spec["containers"].([]any)[0].(map[string]any)
	delete(container, "securityContext")
	parse(t, onHostContainer, &container)
	var mounts []any
	parse(t, onHostMounts, &mounts)
	container["volumeMounts"] = append(container["volumeMounts"].([]any), mounts...)
	g.Expect(privileged).To(Equal(restricted))
}

func fields(t *testing.T, runOnHost bool) map[string]any {
	t.Helper()
	s := Service{Name: "thing", Instance: "x", Project: "nova", Command: Start("thing", "--debug"), RunOnHost: runOnHost}
	pod, err := yaml.Marshal(s.pod("hash", s.main(s.Name, s.Command)))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	parse(t, string(pod), &all)
	return all
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
