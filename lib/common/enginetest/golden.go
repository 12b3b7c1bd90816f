package enginetest

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// The golden files have host names in this domain, independent of the machine.
var _ = os.Setenv(config.EnvironmentClusterDomain, "cluster.local")

var update = flag.Bool("update", false, "write the golden files")

// Test runs all checks of a kind. Smoke alone needs an API server.
func (s Subject[T]) Test(t *testing.T) {
	t.Run("Golden", s.Golden)
	t.Run("Conform", s.Conform)
	t.Run("Smoke", s.Smoke)
}

// Golden records every fixture and compares the record with its golden file: the children of
// each stage as they were sent, without labels and annotations of the engine, and at the end
// the status from Report. Secrets are shown as text.
func (s Subject[T]) Golden(t *testing.T) {
	for _, path := range orphans(s.testdata()) {
		t.Errorf("%s has no in.yaml beside it: remove the folder", path)
	}
	treat := checkGolden
	if *update {
		treat = updateGolden
	}
	fixtures := s.fixtures(t)
	slices.SortStableFunc(fixtures, func(a, b fixture[T]) int { return strings.Compare(order(a.name), order(b.name)) })
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			if err := treat(f.dir, s.show(t, s.record(t, f, nil))); err != nil {
				t.Errorf("%v\nto accept all changes: go test -run %s . -update", err, t.Name())
			}
		})
	}
}

func (s Subject[T]) show(t testing.TB, r *recording[T]) string {
	t.Helper()
	var out bytes.Buffer
	if r.cr.GetDeletionTimestamp() != nil {
		for _, line := range r.log {
			fmt.Fprintf(&out, "# %s\n", line)
		}
	} else {
		for _, stage := range s.Service.Stages {
			r.showStage(t, &out, stage.Condition)
		}
		for _, line := range r.log {
			if strings.HasPrefix(line, "deleted ") {
				fmt.Fprintf(&out, "# %s\n", line)
			}
		}
	}
	status := reported(t, r.cr)
	if len(status) > 0 {
		printYAML(t, &out, "status", map[string]any{"status": status})
	}
	return out.String()
}

// showStage prints a stage's children, and a comment if it has no children or is not ready.
func (r *recording[T]) showStage(t testing.TB, out *bytes.Buffer, stage string) {
	t.Helper()
	empty := true
	for _, child := range r.applied {
		if child.stage == stage {
			empty = false
			r.showChild(t, out, child)
		}
	}
	switch condition := meta.FindStatusCondition(r.cr.Common().Conditions, stage); {
	case condition == nil:
		fmt.Fprintf(out, "# %s: no condition\n", stage)
	case condition.Reason == engine.ReasonNotReached:
	case condition.Status != metav1.ConditionTrue:
		fmt.Fprintf(out, "# %s: %s\n", stage, strings.ReplaceAll(condition.Message, "\n", "\n#   "))
	case empty:
		fmt.Fprintf(out, "# %s: nothing to apply\n", stage)
	}
}

func (r *recording[T]) showChild(t testing.TB, out *bytes.Buffer, child appliedChild) {
	t.Helper()
	title := child.stage
	if child.GetLabels()[labelRunOf] != "" {
		title += ", once"
	}
	if len(child.generated) > 0 {
		slices.Sort(child.generated)
		title += ", generated (" + strings.Join(child.generated, ", ") + ")"
	}
	if child.GetOwnerReferences() == nil {
		title += ", unowned"
	}
	if child.GetLabels()["asterism.dev/lingers"] != "" {
		title += ", lingering"
	}
	printYAML(t, out, title, unstamped(child.Unstructured, r.cr.GetNamespace()).Object)
}

// longText is the maximum size of a file in a ConfigMap that is printed completely, in bytes.
const longText = 1500

// readable replaces the data of a Secret by text, and scripts and long texts in a ConfigMap
// by their first line, because they are the same in every fixture.
func readable(object *unstructured.Unstructured) {
	data, found, _ := unstructured.NestedStringMap(object.Object, "data")
	if !found {
		return
	}
	texts := map[string]any{}
	for key, text := range data {
		decoded, err := base64.StdEncoding.DecodeString(text)
		switch {
		case object.GetKind() == secretKind && err == nil:
			text = string(decoded)
		case strings.HasPrefix(text, "#!"), len(text) > longText:
			first, _, _ := strings.Cut(text, "\n")
			text = first + " …"
		}
		texts[key] = text
	}
	if object.GetKind() == secretKind {
		unstructured.RemoveNestedField(object.Object, "data")
		object.Object["stringData"] = texts
		return
	}
	object.Object["data"] = texts
}

// unstamped returns a child without the labels, annotations and owners of the engine.
func unstamped(child *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	object := child.DeepCopy()
	readable(object)
	unstructured.RemoveNestedField(object.Object, "metadata", "ownerReferences")
	if object.GetNamespace() == namespace {
		object.SetNamespace("")
	}
	for _, field := range []string{"labels", "annotations"} {
		stamped, _, _ := unstructured.NestedStringMap(object.Object, "metadata", field)
		for _, key := range []string{"owner-uid", "stage", "lingers", "run-of", "applied-hash", "owner"} {
			delete(stamped, "asterism.dev/"+key)
		}
		unstructured.RemoveNestedField(object.Object, "metadata", field)
		if len(stamped) > 0 {
			_ = unstructured.SetNestedStringMap(object.Object, stamped, "metadata", field)
		}
	}
	return object
}

// reported returns the status without the fields of every kind.
func reported(t testing.TB, cr engine.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cr)
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(content, "status")
	for _, common := range []string{"conditions", "completed", "observedGeneration"} {
		delete(status, common)
	}
	return status
}

func printYAML(t testing.TB, out *bytes.Buffer, title string, content any) {
	t.Helper()
	encoded, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "--- # %s\n%s", title, encoded)
}
