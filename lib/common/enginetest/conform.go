package enginetest

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// Conform checks the rules for every service and every fixture: builders are deterministic;
// Owns has every kind that they build; names and labels are not too long; no selector
// selects the pods of Jobs; the API package lists every condition; the service waits for
// every missing need; a Secret with many secret values takes little memory; a reader of the
// status and of children other than Secrets cannot test guesses of a password; nothing is done for
// a paused object; and the generated Role grants every used right.
func (s Subject[T]) Conform(t *testing.T) {
	for _, problem := range s.Problems(t) {
		t.Error(problem)
	}
	s.checkBomb(t)
}

// Problems returns the violations that Conform reports, except for the memory that a Secret takes.
func (s Subject[T]) Problems(t testing.TB) []string {
	t.Helper()
	all := &problems{}
	fixtures := s.fixtures(t)
	s.checkConditions(all)
	if len(s.Service.Owns) > 0 {
		s.checkLongestName(t, all, fixtures)
	}
	for _, f := range fixtures {
		of := &problems{of: f.name + ": "}
		recorded := s.record(t, f, nil)
		first, again := s.show(t, recorded), s.show(t, s.record(t, f, nil))
		if first != again {
			of.add("Build is not deterministic:\n%s", difference("first", first, "again", again))
		}
		for _, child := range recorded.applied {
			s.checkChild(t, of, child)
		}
		checkJobPods(of, recorded.applied)
		s.checkNeeds(t, of, f, recorded)
		s.checkGuesses(t, of, f, recorded)
		s.checkPause(t, of, f)
		all.found = append(all.found, of.found...)
	}
	for _, missing := range s.Used(t).without(readRole(t, s.role(t))) {
		all.add("%s does not grant %s: add the marker and type \"make generate\"", filepath.Base(s.role(t)), missing)
	}
	return all.found
}

const (
	secretKind    = "Secret"
	namespaceKind = "Namespace"
)

// mostForBomb bounds the bytes that all passes over a fixture allocate although a Secret is
// a SecretBomb, with the copies that the fake API server makes of the Secret.
const mostForBomb = 1 << 30

// checkBomb adds a SecretBomb to a Secret of the first fixture with one: whoever may write a
// Secret must not decide how much memory the operator takes.
func (s Subject[T]) checkBomb(t *testing.T) {
	t.Helper()
	for _, f := range s.fixtures(t) {
		at := slices.IndexFunc(f.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == secretKind })
		if at < 0 {
			continue
		}
		secret := f.objects[at].DeepCopy()
		if err := unstructured.SetNestedField(secret.Object, base64.StdEncoding.EncodeToString(SecretBomb()), "data", "bomb"); err != nil {
			t.Fatal(err)
		}
		f.objects = slices.Clone(f.objects)
		f.objects[at] = secret
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.record(t, f, nil)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > mostForBomb {
			t.Errorf("%s: with a Secret of 1 MiB, the passes allocate %d MiB, at most %d are allowed", f.name, got>>20, mostForBomb>>20)
		}
		return
	}
}

type problems struct {
	of    string
	found []string
}

func (p *problems) add(format string, args ...any) {
	p.found = append(p.found, p.of+fmt.Sprintf(format, args...))
}

func (s Subject[T]) checkConditions(all *problems) {
	stages := conditionsOf(s.Service.Stages)
	if !slices.Equal(stages, s.Conditions) {
		all.add("the stages have the conditions %v, the API package lists %v", stages, s.Conditions)
	}
	seen := map[string]bool{}
	for _, stage := range append(stages, conditionsOf(s.Service.Teardown)...) {
		if seen[stage] {
			all.add("two stages have the condition %s", stage)
		}
		seen[stage] = true
	}
}

func conditionsOf[T engine.Object](stages []engine.Stage[T]) []string {
	var all []string
	for _, stage := range stages {
		all = append(all, stage.Condition)
	}
	return all
}

// longestName matches the rule of a CRD on the length of names.
var longestName = regexp.MustCompile(`size\(self\.metadata\.name\) <= (\d+)`)

// checkLongestName requires a fixture with the longest name that the CRD allows, because
// the names of children contain it.
func (s Subject[T]) checkLongestName(t testing.TB, all *problems, fixtures []fixture[T]) {
	t.Helper()
	gvk := s.kind(t)
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
			all.add("the CRD of %s does not limit the length of its name, so that names of children may be too long: add the rule self.metadata.name.size() <= N to the kind", gvk.Kind)
			return
		}
		longest, _ := strconv.Atoi(string(found[1])) // digits, as matched
		if !slices.ContainsFunc(fixtures, func(f fixture[T]) bool { return len(f.cr.GetName()) == longest }) {
			all.add("no fixture has a name of %d characters, the longest that the CRD of %s allows: add a folder longest-name with such an in.yaml", longest, gvk.Kind)
		}
		return
	}
	all.add("there is no CRD of %s in %v", gvk.Kind, s.crds(t))
}

// longestOf bounds the names of kinds whose names become labels or host names. The name of
// a StatefulSet becomes a label together with the hash of a revision.
var longestOf = map[string]int{"Service": 63, "Job": 63, "StatefulSet": 52, "Deployment": 52, "DaemonSet": 52, namespaceKind: 63}

func (s Subject[T]) checkChild(t testing.TB, all *problems, child appliedChild) {
	t.Helper()
	title := child.GetKind() + " " + child.GetName()
	if !slices.Contains(s.ownedKinds(t), child.GroupVersionKind()) {
		all.add("%s is built, but its kind is not in Owns: add the kind", title)
	}
	longest := longestOf[child.GetKind()]
	if longest == 0 {
		longest = 253
	}
	if len(child.GetName()) > longest {
		all.add("%s: the name has %d characters, %d at most", title, len(child.GetName()), longest)
	}
	for key, value := range child.GetLabels() {
		for _, problem := range validation.IsValidLabelValue(value) {
			all.add("%s: label %s: %s", title, key, problem)
		}
	}
	if _, ok := child.Object["stringData"]; ok {
		all.add("%s: stringData is not tracked by server-side apply: use data", title)
	}
	if child.GetLabels()[labelRunOf] != "" {
		checkJob(all, title, child.Unstructured)
	}
	checkNulls(all, title, "", child.Object)
	checkEnvironment(all, title, child.Object)
}

// checkNulls finds fields that a conversion has set to null. The API server never records an
// owner for them, so that the engine would send the child in every pass.
func checkNulls(all *problems, title, path string, value any) {
	switch value := value.(type) {
	case nil:
		all.add("%s: %s is null: leave it out", title, strings.TrimPrefix(path, "."))
	case map[string]any:
		for key, field := range value {
			checkNulls(all, title, path+"."+key, field)
		}
	case []any:
		for _, element := range value {
			checkNulls(all, title, path+"[]", element)
		}
	}
}

func checkJob(all *problems, title string, job *unstructured.Unstructured) {
	limit, _, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "backoffLimit")
	if number, ok := limit.(float64); !ok || number != 0 {
		all.add("%s: backoffLimit is %v, it must be 0: the engine retries", title, limit)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "ttlSecondsAfterFinished"); found {
		all.add("%s: has ttlSecondsAfterFinished: remove it, or the Job runs again after its deletion", title)
	}
}

// checkEnvironment finds variables that a container has twice: the API server refuses an
// apply of such a container with status 500.
func checkEnvironment(all *problems, title string, value any) {
	switch value := value.(type) {
	case map[string]any:
		seen := map[any]bool{}
		env, _ := value["env"].([]any)
		for _, variable := range env {
			if v, ok := variable.(map[string]any); ok {
				if seen[v["name"]] {
					all.add("%s: the environment variable %v is there twice", title, v["name"])
				}
				seen[v["name"]] = true
			}
		}
		for _, field := range value {
			checkEnvironment(all, title, field)
		}
	case []any:
		for _, element := range value {
			checkEnvironment(all, title, element)
		}
	}
}

// checkNeeds records the fixture without each object that was read by name. Each time, either
// Ready does not change, or a stage waits for the object and names it.
func (s Subject[T]) checkNeeds(t testing.TB, all *problems, f fixture[T], recorded *recording[T]) {
	t.Helper()
	with := meta.FindStatusCondition(recorded.cr.Common().Conditions, commonv1.ConditionReady)
	for looked := range recorded.looks {
		object := f.find(looked)
		if object == nil || recorded.isApplied(object) || object.GetLabels()[labelOwnerUID] != "" {
			continue // for a child, the message of the service differs
		}
		without := meta.FindStatusCondition(s.record(t, f, object).cr.Common().Conditions, commonv1.ConditionReady)
		switch {
		case with == nil || without == nil || without.Status == metav1.ConditionTrue || with.Message == without.Message:
		case with.Reason == engine.ReasonConflict: // the object may be the foreign object
		case without.Reason != engine.ReasonWaiting:
			all.add("without %s %s the reason is %q, want %s: %s", looked.kind.Kind, looked.name, without.Reason, engine.ReasonWaiting, without.Message)
		case !strings.Contains(without.Message, looked.name):
			all.add("without %s %s the message does not name it: %s", looked.kind.Kind, looked.name, without.Message)
		}
	}
}

func (f fixture[T]) find(looked look) *unstructured.Unstructured {
	for _, object := range f.objects {
		if object.GroupVersionKind() == looked.kind && object.GetName() == looked.name {
			return object
		}
	}
	return nil
}

func (r *recording[T]) isApplied(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(r.applied, func(child appliedChild) bool {
		return child.GroupVersionKind() == object.GroupVersionKind() && child.GetName() == object.GetName()
	})
}

// kind of T.
func (s Subject[T]) kind(t testing.TB) schema.GroupVersionKind {
	t.Helper()
	gvk, err := apiutil.GVKForObject(s.fixtures(t)[0].cr, s.scheme(t))
	if err != nil {
		t.Fatal(err)
	}
	return gvk
}

func (s Subject[T]) ownedKinds(t testing.TB) []schema.GroupVersionKind {
	t.Helper()
	scheme := s.scheme(t)
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
