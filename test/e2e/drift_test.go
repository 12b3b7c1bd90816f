package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// driftSpecs change every field that an operator owns.
func driftSpecs() {
	It("restores every field that its operators own, and restarts no pod", func(ctx SpecContext) {
		pods, rollouts := servicePods(ctx, demoNamespace, "demo"), rolloutsOf(ctx, demoNamespace)
		holdRollouts(ctx, true)
		driftAll(ctx)
		awaitHeld(ctx, demoNamespace, rollouts)
		holdRollouts(ctx, false)
		awaitNoRestart(ctx, demoNamespace, "demo", pods, rollouts)
	}, SpecTimeout(16*time.Minute))

	It("restores changes made while its operators were down", func(ctx SpecContext) {
		pods, rollouts := servicePods(ctx, demoNamespace, "demo"), rolloutsOf(ctx, demoNamespace)
		holdRollouts(ctx, true)
		down := []string{"nova", "nova-scheduler", "nova-api", "nova-metadata"}
		DeferCleanup(func(ctx SpecContext) { // also after a failure
			scaleOperators(ctx, systemNamespace, 1, down...)
			holdRollouts(ctx, false)
		})
		scaleOperators(ctx, systemNamespace, 0, down...)
		metadata := "secret/" + connectionsOf(ctx, demoNamespace, "demo-metadata")
		changed := map[string]string{
			"configmap/demo-scheduler-config-data": `{"data":{"10-defaults.conf":"[DEFAULT]\ndebug = true\n"}}`,
			"statefulset/demo-scheduler":           `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`,
			"service/demo-api":                     `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`,
			metadata:                               `{"metadata":{"labels":{"asterism.dev/stage":"Other"}}}`,
		}
		was := map[string]string{}
		for name, patch := range changed {
			was[name] = contentOf(ctx, name)
			kubectl(ctx, "patch", name, "--namespace="+demoNamespace, "--type=merge", "--patch="+patch, "--field-manager=e2e-drift")
			Expect(contentOf(ctx, name)).NotTo(Equal(was[name]))
		}
		scaleOperators(ctx, systemNamespace, 1, down...)
		for name := range changed {
			Eventually(func() string { return contentOf(ctx, name) }).WithContext(ctx).Should(Equal(was[name]))
		}
		awaitHeld(ctx, demoNamespace, rollouts)
		holdRollouts(ctx, false)
		awaitNoRestart(ctx, demoNamespace, "demo", pods, rollouts)
	}, SpecTimeout(12*time.Minute))
}

// contentOf returns the spec, labels and hash of the data of an object.
func contentOf(ctx context.Context, name string) string {
	GinkgoHelper()
	var o unstructured.Unstructured
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", name, "--namespace="+demoNamespace, "--output=json")), &o.Object)).To(Succeed())
	data, err := json.Marshal(o.Object["data"]) // hashed below, as it may be secret
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal([]any{o.Object["spec"], sha256.Sum256(data), o.GetLabels()})
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// holdRollouts pauses the rollout of changed pod templates, by fields that the operators do
// not own, so that a drift that is restored restarts no pod.
func holdRollouts(ctx context.Context, hold bool) {
	GinkgoHelper()
	strategy, paused := "RollingUpdate", "false"
	if hold {
		strategy, paused = "OnDelete", "true"
	}
	for _, o := range everything(ctx, demoNamespace) {
		if o.GetLabels()["app.kubernetes.io/managed-by"] != "asterism" {
			continue
		}
		switch o.GetKind() {
		case "StatefulSet":
			kubectl(ctx, "patch", "statefulset", o.GetName(), "--namespace="+demoNamespace, "--field-manager="+tester, `--patch={"spec":{"updateStrategy":{"type":"`+strategy+`","rollingUpdate":null}}}`)
		case "Deployment":
			kubectl(ctx, "patch", "deployment", o.GetName(), "--namespace="+demoNamespace, "--field-manager="+tester, `--patch={"spec":{"paused":`+paused+`}}`)
		}
	}
}

// driftAll changes every field that an operator owns, in sequence on each object,
// and expects that each is restored.
func driftAll(ctx context.Context) {
	GinkgoHelper()
	var tally tally
	var workers sync.WaitGroup
	for _, o := range everything(ctx, demoNamespace) {
		if isCreatedOnce(&o) {
			continue
		}
		for _, entry := range o.GetManagedFields() {
			if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || !isPlaneOperator(entry.Manager) {
				continue
			}
			workers.Go(func() {
				defer GinkgoRecover()
				drift(ctx, &o, entry, &tally)
			})
		}
	}
	workers.Wait()
	AddReportEntry("drift", tally.String())
	Expect(tally.failed).To(BeEmpty())
	Expect(tally.restored).To(BeNumerically(">", 200))
	for kind, count := range tally.immutable {
		Expect(count).To(BeNumerically("<=", immutableFields[kind]), "fields of a %s that the API server let nobody change", kind)
	}
}

// immutableFields are the most fields of a kind that neither a change nor a removal gets past
// the API server: selectors, names of Services, keys of lists and commands of hooks. A field too many may be one
// that the test no longer changes.
var immutableFields = map[string]int{
	"Deployment": 88, "Nova": 14, "NovaAPI": 1, "NovaCell": 12, "NovaCompute": 1, "NovaConductor": 4, "NovaMetadata": 1,
	"Service": 4, "SharedVolume": 4, "StatefulSet": 180,
}

// isCreatedOnce reports whether an operator writes an object only once: Jobs, and immutable
// objects with passwords or with the configuration of one revision.
func isCreatedOnce(o *unstructured.Unstructured) bool {
	immutable, _, _ := unstructured.NestedBool(o.Object, "immutable")
	return o.GetKind() == "Job" || immutable
}

// tally counts the results of the fields.
type tally struct {
	mu        sync.Mutex
	restored  int
	immutable map[string]int // by kind
	failed    []string
}

func (t *tally) String() string {
	return fmt.Sprintf("%d fields restored; immutable: %v", t.restored, t.immutable)
}

func drift(ctx context.Context, o *unstructured.Unstructured, entry metav1.ManagedFieldsEntry, tally *tally) {
	var owned fieldpath.Set
	Expect(owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))).To(Succeed())
	var paths []fieldpath.Path
	leaves := owned.Leaves()
	owned.Iterate(func(path fieldpath.Path) {
		wholeElement := path[len(path)-1].Key != nil
		if (wholeElement || leaves.Has(path)) && mayDrift(o, path) {
			paths = append(paths, path.Copy())
		}
	})
	sort.Slice(paths, func(i, j int) bool { return paths[i].Compare(paths[j]) < 0 })
	for _, path := range paths {
		name := fmt.Sprintf("%s/%s %s of %s", o.GetKind(), o.GetName(), path, entry.Manager)
		changed, err := driftOne(ctx, o, entry.Manager, path)
		tally.mu.Lock()
		switch {
		case err != nil:
			tally.failed = append(tally.failed, fmt.Sprintf("%s: %v", name, err))
		case changed:
			tally.restored++
		default:
			if tally.immutable == nil {
				tally.immutable = map[string]int{}
			}
			tally.immutable[o.GetKind()]++
		}
		tally.mu.Unlock()
	}
}

// mayDrift excludes fields that operators do not restore by design: an object with a
// changed owner is a foreign object, and the garbage collector may delete an object whose
// owner does not exist.
func mayDrift(o *unstructured.Unstructured, path fieldpath.Path) bool {
	text := path.String()
	if strings.HasPrefix(text, ".metadata.ownerReferences") {
		return strings.HasSuffix(text, ".blockOwnerDeletion")
	}
	return len(o.GetOwnerReferences()) > 0 || !strings.Contains(text, "asterism.dev/owner")
}

// driftOne changes a field or, if the API server refuses that, removes it, and waits until
// the operator owns the field with its first value. changed is false if the server
// refuses the change and the removal.
func driftOne(ctx context.Context, o *unstructured.Unstructured, manager string, path fieldpath.Path) (changed bool, err error) {
	original, found := locate(o.Object, path)
	if !found {
		return false, errors.New("the field is owned, but does not exist")
	}
	for _, mutate := range []func(any) (any, bool){otherValue, noValue} {
		// A drift of the parent may have changed the value for the moment.
		current, err := awaitRestored(ctx, o, manager, path, original)
		if err != nil {
			return false, err
		}
		before := current.GetResourceVersion()
		if !alter(current.Object, path, mutate) {
			continue
		}
		err = k8s.Update(ctx, current, client.FieldOwner("e2e-drift"))
		if apierrors.IsConflict(err) { // another field was written meanwhile
			return driftOne(ctx, o, manager, path)
		}
		if err == nil && current.GetResourceVersion() != before {
			_, err := awaitRestored(ctx, o, manager, path, original)
			return true, err
		}
	}
	return false, nil
}

// awaitRestored returns the object once the manager owns the field with its original value. Many
// objects are read at once, so it reads less often the longer it waits.
func awaitRestored(ctx context.Context, o *unstructured.Unstructured, manager string, path fieldpath.Path, original any) (*unstructured.Unstructured, error) {
	// A walk that ends early restores nothing in later stages. The computes of a cell are such a
	// stage while its conductor is not ready, whose fields change one after the other for minutes.
	const limit = 8 * time.Minute
	for started := time.Now(); time.Since(started) < limit; {
		current := o.DeepCopy()
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
			return nil, err
		}
		value, found := locate(current.Object, path)
		if found && reflect.DeepEqual(value, original) && owns(current, manager, path) {
			return current, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(max(time.Since(started)/8, 20*time.Millisecond), 500*time.Millisecond)):
		}
	}
	return nil, fmt.Errorf("not restored within %s", limit)
}

func owns(o *unstructured.Unstructured, manager string, path fieldpath.Path) bool {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		var owned fieldpath.Set
		if owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) == nil && owned.Has(path) {
			return true
		}
	}
	return false
}

// otherValue changes a scalar.
func otherValue(value any) (any, bool) {
	switch value := value.(type) {
	case string:
		return value + "x", true
	case int64:
		return value + 1, true
	case float64:
		return value + 1, true
	case bool:
		return !value, true
	}
	return nil, false
}

// noValue removes a field.
func noValue(any) (any, bool) { return nil, true }

// locate returns the value at a path of managedFields.
func locate(value any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch container := value.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			next, found := container[*element.FieldName]
			if !found {
				return nil, false
			}
			value = next
		case []any:
			index := indexOf(container, element)
			if index < 0 {
				return nil, false
			}
			value = container[index]
		default:
			return nil, false
		}
	}
	return value, true
}

// indexOf finds an element by its keys or its value.
func indexOf(list []any, element fieldpath.PathElement) int {
	return slices.IndexFunc(list, func(entry any) bool {
		switch {
		case element.Value != nil:
			return reflect.DeepEqual(entry, (*element.Value).Unstructured())
		case element.Key != nil:
			fields, _ := entry.(map[string]any)
			return !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
				return fmt.Sprint(fields[key.Name]) != fmt.Sprint(key.Value.Unstructured())
			})
		}
		return false
	})
}

// alter replaces or removes the value at a path; false if mutate has no other value.
func alter(root map[string]any, path fieldpath.Path, mutate func(any) (any, bool)) bool {
	parent, found := locate(root, path[:len(path)-1])
	if !found {
		return false
	}
	last := path[len(path)-1]
	switch container := parent.(type) {
	case map[string]any:
		value, ok := mutate(container[*last.FieldName])
		if !ok || isKey(path) && value != nil {
			return false
		}
		if value == nil {
			delete(container, *last.FieldName)
		} else {
			container[*last.FieldName] = value
		}
		return true
	case []any:
		if value, ok := mutate(container[indexOf(container, last)]); !ok || value != nil {
			return false // another element would have another owner, and stay
		}
		kept := slices.Delete(slices.Clone(container), indexOf(container, last), indexOf(container, last)+1)
		owner, _ := locate(root, path[:len(path)-2])
		fields, ok := owner.(map[string]any)
		if !ok {
			return false
		}
		fields[*path[len(path)-2].FieldName] = kept
		return true
	}
	return false
}

// isKey reports whether a path is a key of a list's element. A changed key would give
// another element.
func isKey(path fieldpath.Path) bool {
	if len(path) < 2 || path[len(path)-2].Key == nil {
		return false
	}
	return slices.ContainsFunc(*path[len(path)-2].Key, func(key smdvalue.Field) bool { return key.Name == *path[len(path)-1].FieldName })
}

// servicePods returns the UIDs of the pods of a Nova's services, without those that are ending, and
// without those of Jobs: a Job runs again after its inputs drift and are restored.
func servicePods(ctx context.Context, namespace, nova string) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, pod := range podsOf(ctx, namespace, map[string]string{"app.kubernetes.io/part-of": nova}) {
		if _, isJobs := pod.Labels["batch.kubernetes.io/job-name"]; !isJobs && pod.DeletionTimestamp == nil {
			uids[pod.Name] = string(pod.UID)
		}
	}
	Expect(uids).NotTo(BeEmpty())
	return uids
}

// rolloutsOf returns the pod templates of a namespace's workloads, with the revisions of
// the Deployments.
func rolloutsOf(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	rollouts := map[string]string{}
	for _, o := range everything(ctx, namespace) {
		if kind := o.GetKind(); kind != "Deployment" && kind != "StatefulSet" {
			continue
		}
		template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
		text, err := json.Marshal(template)
		Expect(err).NotTo(HaveOccurred())
		rollouts[o.GetKind()+"/"+o.GetName()] = fmt.Sprintf("%s, revision %s", text, o.GetAnnotations()["deployment.kubernetes.io/revision"])
	}
	Expect(rollouts).NotTo(BeEmpty())
	return rollouts
}

// awaitHeld waits until no workload would be rolled out: a child may not yet have seen that
// its parent, or a Secret that it reads, was restored.
func awaitHeld(ctx context.Context, namespace string, rollouts map[string]string) {
	GinkgoHelper()
	awaitSettled(ctx, namespace)
	Eventually(rolloutsOf).WithContext(ctx).WithArguments(namespace).Should(Equal(rollouts))
	Consistently(rolloutsOf).WithContext(ctx).WithArguments(namespace).Should(Equal(rollouts))
}

// awaitNoRestart waits until a Nova's services have exactly the previous pods. An extra pod
// of a changed number of replicas takes a while to end; a restarted pod never gets its
// old UID; and a surge would change the revision.
func awaitNoRestart(ctx context.Context, namespace, nova string, pods, rollouts map[string]string) {
	GinkgoHelper()
	awaitReady(ctx, "ControlPlane", namespace, nova)
	Eventually(servicePods).WithContext(ctx).WithArguments(namespace, nova).Should(Equal(pods))
	Expect(rolloutsOf(ctx, namespace)).To(Equal(rollouts))
}
