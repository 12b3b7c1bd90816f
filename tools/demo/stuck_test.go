package main

import (
	"strings"
	"testing"

	"asterism.dev/cli/tree"
)

func TestDiagnoseFindsTheBlockingObject(t *testing.T) {
	for name, test := range map[string]struct {
		root [2]string
		path string
		leaf []string // in the leaf's line
	}{
		"job-failed.yaml": {
			root: [2]string{"ControlPlane", "demo"},
			path: "ControlPlane/demo Nova/demo NovaConductor/demo-superconductor Job/demo-superconductor-db-1234abcd Pod/demo-superconductor-db-1234abcd-x7k2p",
			leaf: []string{"container db-sync", "exit code 1", "Access denied for user"},
		},
		"crash-loop.yaml": {
			root: [2]string{"NovaAPI", "demo-api"},
			path: "NovaAPI/demo-api Deployment/demo-api ReplicaSet/demo-api-6f Pod/demo-api-6f-abcde",
			leaf: []string{"container merge-config", "CrashLoopBackOff", "restarts: 3", "exit code 2"},
		},
		"own-trouble.yaml": {
			root: [2]string{"Nova", "demo"},
			path: "Nova/demo",
			leaf: []string{"IdentityReady Unreachable: keystone.openstack.svc:5000: connection refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tree.New(readObjects(t, name))
			found := pathOf(f, find(f, test.root[0], test.root[1]))
			var path []string
			for _, o := range found {
				path = append(path, o.GetKind()+"/"+o.GetName())
			}
			if got := strings.Join(path, " "); got != test.path {
				t.Errorf("got  %s\nwant %s", got, test.path)
			}
			lines := strings.Split(textOf(found), "\n")
			for _, want := range test.leaf {
				if !strings.Contains(lines[len(lines)-1], want) {
					t.Errorf("%q is missing in the last line of:\n%s", want, textOf(found))
				}
			}
		})
	}
}

func TestOperatorOfAKindIsFound(t *testing.T) {
	d := &demo{root: "../.."}
	for kind, want := range map[string]string{"NovaAPI": "nova-api", "NovaCell": "nova", "SharedFileSystem": "shared-volume"} {
		if got, err := d.operatorOf(kind); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", kind, got, err, want)
		}
	}
	if got, err := d.operatorOf("Pod"); err == nil {
		t.Errorf("Pod: got %s", got)
	}
}

func TestLinesAboutReturnsAllLinesIfNoneHasTheWord(t *testing.T) {
	const log = "started\nNova demo: refused\nlease renewed\n"
	if got := linesAbout(log, "demo"); got != "Nova demo: refused" {
		t.Errorf("got %q", got)
	}
	if got := linesAbout(log, "other"); got != log {
		t.Errorf("got %q", got)
	}
}
