package enginetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"asterism.dev/lib/common/engine"
)

// Conform checks what must hold for every service and every fixture: that
// builders are deterministic, that every kind they build is in Owns, that
// names and labels fit, that every condition is one of the API package, that a
// missing need is waited for, and that the generated Role grants what is used.
func (s Subject[T]) Conform(t *testing.T) {
	s.conformConditions(t)
	fixtures := s.fixtures(t)
	s.conformNames(t, fixtures)
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			rendered := s.render(t, f, nil)
			if again := s.render(t, f, nil); !bytes.Equal(print(t, rendered), print(t, again)) {
				t.Errorf("Build is not deterministic:\n%s", firstDifference(print(t, rendered), print(t, again)))
			}
			for _, stage := range rendered.stages {
				for _, child := range stage.Children {
					s.conformChild(t, child)
				}
			}
			s.conformNeeds(t, f, rendered)
		})
	}
	granted := readRole(t, filepath.Join(moduleRoot(t), "config", "rbac", "role.yaml"))
	for _, missing := range s.Used(t).without(granted) {
		t.Errorf("config/rbac/role.yaml does not grant %s: add the marker and type \"make generate\"", missing)
	}
}

func (s Subject[T]) conformConditions(t *testing.T) {
	t.Helper()
	var stages []string
	for _, stage := range s.Service.Stages {
		stages = append(stages, stage.Condition)
	}
	if !slices.Equal(stages, s.Conditions) {
		t.Errorf("the stages have the conditions %v, the API package lists %v", stages, s.Conditions)
	}
	seen := map[string]bool{}
	for _, stage := range append(stages, teardown(s.Service)...) {
		if seen[stage] {
			t.Errorf("two stages have the condition %s", stage)
		}
		seen[stage] = true
	}
}

func teardown[T engine.Object](service engine.Service[T]) []string {
	var stages []string
	for _, stage := range service.Teardown {
		stages = append(stages, stage.Condition)
	}
	return stages
}

// longestName is what a CRD's rule on the length of names looks like.
var longestName = regexp.MustCompile(`size\(self\.metadata\.name\) <= (\d+)`)

// conformNames demands a fixture whose name is as long as the CRD allows, since
// everything is named after it.
func (s Subject[T]) conformNames(t *testing.T, fixtures []fixture[T]) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(fixtures[0].cr, Scheme(t, s.AddToScheme...))
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range s.definitions(t) {
		if definition.Spec.Group != gvk.Group || definition.Spec.Names.Kind != gvk.Kind {
			continue
		}
		content, err := yaml.Marshal(definition.Spec.Versions)
		if err != nil {
			t.Fatal(err)
		}
		found := longestName.FindSubmatch(content)
		if found == nil {
			t.Errorf("the CRD of %s does not limit the length of its name, and children's names must fit", gvk.Kind)
			return
		}
		longest, _ := strconv.Atoi(string(found[1]))
		if !slices.ContainsFunc(fixtures, func(f fixture[T]) bool { return len(f.cr.GetName()) == longest }) {
			t.Errorf("no fixture has a name of %d characters, the longest that the CRD of %s allows", longest, gvk.Kind)
		}
		return
	}
	t.Errorf("there is no CRD of %s in %v", gvk.Kind, s.crds(t))
}

// longestOf bounds the names of kinds whose names become labels or host names.
// A StatefulSet's becomes a label together with the hash of a revision.
var longestOf = map[string]int{"Service": 63, "Job": 63, "StatefulSet": 52, "Deployment": 52, "DaemonSet": 52, "Namespace": 63}

func (s Subject[T]) conformChild(t *testing.T, child engine.RenderedChild) {
	t.Helper()
	title := child.GetKind() + " " + child.GetName()
	if !s.owns(t, child.GroupVersionKind()) {
		t.Errorf("%s is built, but its kind is not in Owns", title)
	}
	longest := longestOf[child.GetKind()]
	if longest == 0 {
		longest = 253
	}
	if len(child.GetName()) > longest {
		t.Errorf("%s: the name has %d characters, %d at most", title, len(child.GetName()), longest)
	}
	for key, value := range child.GetLabels() {
		for _, problem := range validation.IsValidLabelValue(value) {
			t.Errorf("%s: label %s: %s", title, key, problem)
		}
	}
	if _, ok := child.Object["stringData"]; ok {
		t.Errorf("%s: stringData is not tracked by server-side apply: use data", title)
	}
	if child.Treatment == "once" {
		conformJob(t, title, child.Unstructured)
	}
	conformEnv(t, title, child.Object)
}

func conformJob(t *testing.T, title string, job *unstructured.Unstructured) {
	t.Helper()
	limit, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "backoffLimit")
	if number, ok := limit.(float64); !found || !ok || number != 0 {
		t.Errorf("%s: backoffLimit is %v, it must be 0: the engine retries", title, limit)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "ttlSecondsAfterFinished"); found {
		t.Errorf("%s: ttlSecondsAfterFinished would make it run again", title)
	}
}

// conformEnv finds environment variables that a container has twice: the API
// server answers an apply of them with 500.
func conformEnv(t *testing.T, title string, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		if env, ok := value["env"].([]any); ok {
			seen := map[any]bool{}
			for _, variable := range env {
				if v, ok := variable.(map[string]any); ok {
					if seen[v["name"]] {
						t.Errorf("%s: the environment variable %v is there twice", title, v["name"])
					}
					seen[v["name"]] = true
				}
			}
		}
		for _, field := range value {
			conformEnv(t, title, field)
		}
	case []any:
		for _, element := range value {
			conformEnv(t, title, element)
		}
	}
}

// conformNeeds takes away every object that is needed, one at a time.
func (s Subject[T]) conformNeeds(t *testing.T, f fixture[T], rendered rendering[T]) {
	t.Helper()
	for _, stage := range rendered.stages {
		for _, need := range stage.Needs {
			if !need.Required {
				continue
			}
			object := f.find(need)
			if object == nil {
				continue // made by an earlier stage, or missing in this fixture
			}
			var ended error
			for _, stage := range s.render(t, f, object).stages {
				if ended == nil {
					ended = stage.Err
				}
			}
			if reason := engine.Reason(ended); reason != engine.ReasonWaiting {
				t.Errorf("without %s %s the reason is %q, want %s: %v", need.Kind, need.Name, reason, engine.ReasonWaiting, ended)
			} else if !strings.Contains(ended.Error(), need.Name) {
				t.Errorf("without %s %s the message does not name it: %v", need.Kind, need.Name, ended)
			}
		}
	}
}

func (f fixture[T]) find(need engine.Needed) *unstructured.Unstructured {
	for _, object := range f.objects {
		if object.GroupVersionKind() == need.GroupVersionKind && object.GetName() == need.Name {
			return object
		}
	}
	return nil
}

func (s Subject[T]) owns(t testing.TB, gvk schema.GroupVersionKind) bool {
	t.Helper()
	for _, owned := range s.ownedKinds(t) {
		if owned == gvk {
			return true
		}
	}
	return false
}

func (s Subject[T]) ownedKinds(t testing.TB) []schema.GroupVersionKind {
	t.Helper()
	scheme := Scheme(t, s.AddToScheme...)
	var all []schema.GroupVersionKind
	for _, object := range s.Service.Owns {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatalf("Owns: %v", err)
		}
		all = append(all, gvk)
	}
	return all
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("%w: type \"make generate\"", err))
	}
	return content
}
