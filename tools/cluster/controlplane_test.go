package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// session is a cluster and the output of its commands.
type session struct {
	*testing.T
	cluster *cluster
	printed bytes.Buffer
}

func (s *session) up() {
	s.Helper()
	s.printed.Reset()
	if err := s.cluster.up(s.Context(), true); err != nil {
		s.Fatal(err)
	}
}

// shell runs a command after sourcing the cluster's env file.
func (s *session) shell(command string) (string, error) {
	s.Helper()
	output, err := exec.CommandContext(s.Context(), "/bin/sh", "-c", `. "$0" && `+command, s.cluster.envFile()).CombinedOutput()
	return string(output), err
}

func (s *session) must(command string) string {
	s.Helper()
	output, err := s.shell(command)
	if err != nil {
		s.Fatalf("%s: %v\n%s", command, err, output)
	}
	return output
}

func (s *session) pids() map[string]int {
	s.Helper()
	pids := map[string]int{}
	for _, p := range list(s.T, s.cluster.dir) {
		pids[p.Component] = p.PID
	}
	return pids
}

func newSession(t *testing.T) *session {
	t.Helper()
	c, err := openCluster(filepath.Join(t.TempDir(), "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	s := &session{T: t, cluster: c}
	c.progress = progress.New(&s.printed, 0)
	t.Cleanup(func() {
		for _, p := range list(t, c.dir) {
			_ = p.Signal(syscall.SIGKILL)
		}
	})
	return s
}

// The first run builds the binaries, which takes some minutes: go test -timeout 30m.
func TestControlPlane(t *testing.T) {
	s := newSession(t)
	s.up()
	s.must("kubectl get serviceaccount default")
	s.must("kubectl create configmap owner")
	s.auditNames("create", "configmaps", "owner")
	s.enforcesOwnerReferences()

	before := s.pids()
	s.up()
	if !strings.Contains(s.printed.String(), "already up") || strings.Contains(s.printed.String(), "starting") {
		t.Errorf("a second up changes the cluster:\n%s", s.printed.String())
	}

	if err := syscall.Kill(before["kube-apiserver"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var status bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := process.Poll(ctx, pollInterval, func() error {
		status.Reset()
		if s.cluster.status(ctx, &status) == nil || !strings.Contains(status.String(), "not running") {
			return fmt.Errorf("status reports no killed kube-apiserver:\n%s", status.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.up()
	after := s.pids()
	if after["kube-apiserver"] == before["kube-apiserver"] || after["etcd"] != before["etcd"] {
		t.Errorf("up must start the killed kube-apiserver and keep etcd running: %v, then %v", before, after)
	}
	s.must("kubectl get configmap owner")
	if err := s.cluster.status(t.Context(), &status); err != nil {
		t.Errorf("%v\n%s", err, status.String())
	}

	if err := s.cluster.down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := list(t, s.cluster.dir); len(left) > 0 {
		t.Errorf("down leaves processes: %v", left)
	}
	if exists(s.cluster.dir) {
		t.Errorf("down leaves %s", s.cluster.dir)
	}
}

// auditNames checks that the audit log contains the verb, the object and the user.
func (s *session) auditNames(verb, resource, name string) {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.cluster.dir, "audit.log"))
	if err != nil {
		s.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var event struct {
			Stage, Verb, UserAgent string
			User                   struct{ Username string }
			ObjectRef              struct{ Resource, Name string }
			ResponseStatus         struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			s.Fatalf("%v: %s", err, line)
		}
		if event.Stage == "RequestReceived" {
			s.Fatalf("an event of stage RequestReceived is logged: %s", line)
		}
		if event.Verb == verb && event.ObjectRef.Resource == resource && event.ObjectRef.Name == name {
			if event.User.Username != "admin" || !strings.HasPrefix(event.UserAgent, "kubectl/") || event.ResponseStatus.Code != 201 {
				s.Errorf("incomplete: %s", line)
			}
			return
		}
	}
	s.Errorf("the audit log lacks: %s %s %s", verb, resource, name)
}

// enforcesOwnerReferences checks the admission plugin that OpenShift enables: a user needs
// the right to update an owner's finalizers in order to block its deletion.
func (s *session) enforcesOwnerReferences() {
	s.Helper()
	s.must("kubectl create role writer --verb=create --resource=configmaps")
	s.must("kubectl create rolebinding writer --role=writer --serviceaccount=default:default")
	uid := s.must("kubectl get configmap owner -o jsonpath='{.metadata.uid}'")
	output, err := s.shell(`kubectl create --as=system:serviceaccount:default:default -f - <<END
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [
  {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "` + uid + `", "blockOwnerDeletion": true}]}}
END`)
	if err == nil || !strings.Contains(output, "cannot set blockOwnerDeletion") {
		s.Errorf("not refused: %v\n%s", err, output)
	}
}

func list(t *testing.T, dir string) []process.Process {
	t.Helper()
	all, err := process.Of(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
