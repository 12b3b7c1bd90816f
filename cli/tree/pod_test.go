package tree

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestTroubleNamesTheRunWithTheLog: the log of a crashed container is that of its previous run,
// and a container that never ran has no log.
func TestTroubleNamesTheRunWithTheLog(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   Trouble
	}{
		"crashed": {
			`initContainerStatuses: [{name: merge-config, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, message: refused}}}]`,
			Trouble{Container: "merge-config", Text: "CrashLoopBackOff, restarts: 3, the last run ended with exit code 2: refused", Previous: true, Logged: true},
		},
		"ended": {
			`containerStatuses: [{name: db-sync, state: {terminated: {exitCode: 1, message: Access denied}}}]`,
			Trouble{Container: "db-sync", Text: "ended with exit code 1: Access denied", Logged: true},
		},
		"without an image": {
			`containerStatuses: [{name: nova-api, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]`,
			Trouble{Container: "nova-api", Text: "ImagePullBackOff: no such image"},
		},
		"without a node": {
			`conditions: [{type: PodScheduled, status: "False", message: no node fits}]`,
			Trouble{Text: "no node: no node fits"},
		},
		"ready": {`containerStatuses: [{name: nova-api, ready: true, state: {running: {}}}]`, Trouble{}},
		"service that ends": {
			`containerStatuses: [{name: nova-scheduler, state: {terminated: {exitCode: 0, reason: Completed}}}]`,
			Trouble{Container: "nova-scheduler", Text: "ended with exit code 0: Completed", Logged: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod"}}
			status := map[string]any{}
			if err := yaml.Unmarshal([]byte(test.status), &status); err != nil {
				t.Fatal(err)
			}
			pod.Object["status"] = status
			if got := TroubleOf(pod); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestEndsWithoutTrouble: a Job is done, and a pod that is being deleted ends.
func TestEndsWithoutTrouble(t *testing.T) {
	for name, test := range map[string]struct{ pod, want string }{
		"of a Job":      {`{spec: {restartPolicy: Never}}`, ""},
		"being deleted": {`{metadata: {deletionTimestamp: "2026-01-31T10:00:00Z"}, spec: {restartPolicy: Always}}`, "is being deleted"},
	} {
		pod := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.pod), &pod.Object); err != nil {
			t.Fatal(err)
		}
		pod.Object["status"] = map[string]any{"containerStatuses": []any{map[string]any{"name": "map", "state": map[string]any{"terminated": map[string]any{"exitCode": int64(0), "message": "a UUID"}}}}}
		if got := TroubleOf(pod).String(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
