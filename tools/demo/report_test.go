package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asterism.dev/tools/internal/checkout"
)

// fakeKubectl answers the commands of the report.
const fakeKubectl = `#!/bin/sh
case "$*" in
"exec --namespace openstack deployment/openstackclient -- sh -c openstack compute service list") echo "demo-scheduler-0 up" ;;
"exec --namespace openstack deployment/openstackclient -- sh -c openstack server list") echo "demo" ;;
"exec --namespace openstack demo-superconductor-0 --container nova-conductor -- nova-manage cell_v2 list_cells") echo "cell0 cell1" ;;
"exec --stdin --namespace openstack deployment/openstackclient -- python3 - demo") grep -o ACTIVE | head -n 1 ;;
"exec --namespace openstack shared-files-0 -- cat /shared/shared-files-1") echo "hello from shared-files-1" ;;
"exec --namespace openstack shared-files-1 -- cat /shared/shared-files-0") echo "hello from shared-files-0" ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// TestReportHasWhatTheReadmePromises: each item of README's list, and its lines in the report.
func TestReportHasWhatTheReadmePromises(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(fakeKubectl), 0o755); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	d := &demo{
		root: root, dir: filepath.Join(root, ".cluster"), env: []string{"PATH=" + programs + ":" + os.Getenv("PATH")},
		kube: serve(fixture(t, "ready.yaml")...),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var report bytes.Buffer
	if err := d.report(ctx, &report, 90*time.Second); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for promise, lines := range map[string][]string{
		"the ControlPlane with its resources as a tree":            {"\nControlPlane/demo ", "\n└─Nova/demo "},
		"`openstack compute service list`":                         {"\n$ openstack compute service list\ndemo-scheduler-0 up\n"},
		"the instance, which is ACTIVE":                            {"\n$ examples/demo/boot-server demo\nACTIVE\n"},
		"`openstack server list`":                                  {"\n$ openstack server list\ndemo\n"},
		"two pods that read each other's files on a shared volume": {"cat /shared/shared-files-1\nhello from shared-files-1\n", "cat /shared/shared-files-0\nhello from shared-files-0\n"},
		"the next commands to try":                                 {"\nDone in 1m30s. Next:\n  . .cluster/env\n  kubectl get openstack --namespace openstack\n", "\n  make demo-down\n"},
	} {
		if !strings.Contains(string(readme), promise) {
			t.Errorf("examples/README.md does not promise: %s", promise)
		}
		for _, want := range lines {
			if !strings.Contains(report.String(), want) {
				t.Errorf("%s: %q is missing in:\n%s", promise, want, &report)
			}
		}
	}
}
