package enginetest

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// recording records the actions of a service in a simulated cluster that has the objects of a
// fixture, and in which every child is complete at once. The passes of the engine are real;
// only Do is simulated.
type recording[T engine.Object] struct {
	cr      T // after the last pass
	applied []appliedChild
	log     []string // calls of Do, applies and deletions, in order
	looks   map[look]bool
}

// appliedChild is the last version of a child that was sent.
type appliedChild struct {
	*unstructured.Unstructured
	stage     string
	generated []string // the keys with random values
}

// look is one read by the service.
type look struct {
	kind schema.GroupVersionKind
	name string
	live bool // read from the API server and not from the cache
}

// maxPasses is more than any service needs.
const maxPasses = 20

// record records the passes over a fixture; the object without is removed from the fixture.
func (s Subject[T]) record(t testing.TB, f fixture[T], without *unstructured.Unstructured) *recording[T] {
	t.Helper()
	scheme := s.scheme(t)
	served := mapper(scheme, s.definitions(t), f.absent)
	r := &recording[T]{looks: map[look]bool{}}
	cr := f.cr.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
	if cr.GetDeletionTimestamp() != nil && len(cr.GetFinalizers()) == 0 {
		cr.SetFinalizers([]string{s.kind(t).Group + "/" + s.Service.Name})
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()) // without managedFields, which take half of the time
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(served).WithObjectTracker(tracker).WithObjects(cr).WithStatusSubresource(cr)
	results := map[string]string{}
	for _, object := range append(f.objects, clusterIdentity(), hashKey(f.cr.GetNamespace(), f.hashKey)) {
		switch {
		case object == without:
		case object.GetLabels()[labelRunOf] != "": // has the result of a Job
			results[object.GetLabels()[labelRunOf]] = object.GetAnnotations()[annotationResult]
		default:
			builder = builder.WithObjects(s.settled(t, typed(t, scheme, object), cr))
		}
	}
	recorder := &recordingClient{Client: builder.Build(), looks: r.looks, results: results}
	reconciler := s.played(recorder, cr).Unwatched(recorder, liveReader{recorder}, discovered{scheme, served})
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cr)}
	for passes, before := 0, -1; before != len(recorder.log); passes++ {
		if passes == maxPasses {
			t.Fatalf("%s: every pass changes something: %v", f.name, recorder.log)
		}
		before = len(recorder.log)
		_, _ = reconciler.Reconcile(context.Background(), request) // a condition has the error
	}
	r.cr, r.applied, r.log = recorder.last(cr).(T), recorder.applied, recorder.log //nolint:forcetypeassert // the type of cr
	return r
}

// hashKey returns the key of the published hashes of a namespace: golden files need the same key
// in every run.
func hashKey(namespace, value string) *unstructured.Unstructured {
	value = base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%32s", value)))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": secretKind,
		"metadata": map[string]any{"name": engine.HashKeySecret, "namespace": cmp.Or(namespace, "default"), "uid": "00000000-0000-4000-8000-999999999999"},
		"data":     map[string]any{engine.HashKeyField: value},
	}}
}

// settled returns an object of a fixture with the status that its controllers would report.
// An object of a kind that only the service creates becomes a child.
func (s Subject[T]) settled(t testing.TB, object, cr client.Object) client.Object {
	t.Helper()
	complete(object)
	gvk, err := apiutil.GVKForObject(object, s.scheme(t))
	if err != nil {
		t.Fatal(err)
	}
	created := strings.HasSuffix(gvk.Group, "asterism.dev") || gvk.Group == "apps" || gvk.Group == "batch"
	for _, owned := range s.ownedKinds(t) {
		if owned == gvk && created && object.GetLabels()[labelOwnerUID] == "" {
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[labelOwnerUID] = string(cr.GetUID())
			object.SetLabels(labels)
		}
	}
	return object
}

const (
	labelOwnerUID    = "asterism.dev/owner-uid"
	labelStage       = "asterism.dev/stage"
	annotationResult = "asterism.dev/result"
	labelRunOf       = "asterism.dev/run-of"
)

// played returns the service with simulated Dos, which return the Observed of the fixture.
func (s Subject[T]) played(r *recordingClient, cr T) engine.Service[T] {
	service := s.Service
	play := func(stages []engine.Stage[T]) []engine.Stage[T] {
		all := append([]engine.Stage[T]{}, stages...)
		for i, stage := range all {
			if stage.Do == nil {
				continue
			}
			observed := engine.Observed{}
			for _, completed := range cr.Common().Completed {
				if completed.Stage == stage.Condition {
					observed = completed.Observed
				}
			}
			all[i].Do = func(context.Context, T, engine.Inputs) (engine.Observed, error) {
				r.did(stage.Condition + ": called outside")
				return observed, nil
			}
		}
		return all
	}
	service.Stages, service.Teardown = play(service.Stages), play(service.Teardown)
	if service.Available != nil {
		service.Available = &play([]engine.Stage[T]{*service.Available})[0]
	}
	return service
}

// recordingClient simulates the API server and all other controllers.
type recordingClient struct {
	client.Client
	applied []appliedChild
	log     []string
	looks   map[look]bool
	results map[string]string // of Jobs, by the name that their builder gave them
}

func (c *recordingClient) did(event string) { c.log = append(c.log, event) }

// last returns the last version of the reconciled object, also if it was deleted.
func (c *recordingClient) last(obj client.Object) client.Object {
	now := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	if c.Client.Get(context.Background(), client.ObjectKeyFromObject(obj), now) != nil {
		return obj
	}
	return now
}

func (c *recordingClient) looked(obj runtime.Object, name string, live bool) {
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme()); err == nil {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		c.looks[look{kind: gvk, name: name, live: live}] = true
	}
}

func (c *recordingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.looked(obj, key.Name, false)
	return c.Client.Get(ctx, key, obj, opts...)
}

// List finds children like the engine's index.
func (c *recordingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.looked(list, "", false)
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if options.FieldSelector == nil {
		return c.Client.List(ctx, list, opts...)
	}
	owner := options.FieldSelector.Requirements()[0].Value
	if err := c.Client.List(ctx, list); err != nil {
		return err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var children []runtime.Object
	for _, obj := range all {
		if obj.(client.Object).GetLabels()[labelOwnerUID] == owner { //nolint:forcetypeassert // every element has metadata
			children = append(children, obj)
		}
	}
	return meta.SetList(list, children)
}

// liveReader reads from the API server.
type liveReader struct{ *recordingClient }

func (r liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.looked(obj, key.Name, true)
	return r.Client.Get(ctx, key, obj, opts...)
}

func (r liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.looked(list, "", true)
	return r.Client.List(ctx, list, opts...)
}

func (c *recordingClient) Delete(ctx context.Context, obj client.Object, _ ...client.DeleteOption) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	c.did("deleted " + gvk.Kind + " " + obj.GetName())
	return c.Client.Delete(ctx, obj)
}

// Apply stores the child with the status of a complete object, and returns it.
func (c *recordingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	content, ok := obj.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return fmt.Errorf("%T is not unstructured", obj)
	}
	body := &unstructured.Unstructured{Object: content.UnstructuredContent()}
	sent := appliedChild{Unstructured: body.DeepCopy(), stage: body.GetLabels()[labelStage]}
	unstructured.RemoveNestedField(sent.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(sent.Object, "metadata", "uid")
	sent.generated = nameGenerated(sent.Unstructured)
	stored, err := c.store(ctx, sent.DeepCopy())
	if err != nil {
		return err
	}
	c.keep(sent)
	answer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return err
	}
	answer["apiVersion"], answer["kind"] = body.GetAPIVersion(), body.GetKind()
	clear(body.Object)
	for field, value := range answer {
		body.Object[field] = value
	}
	return nil
}

// keep replaces the version of the child that was sent before.
func (c *recordingClient) keep(sent appliedChild) {
	for i, known := range c.applied {
		if known.GroupVersionKind() == sent.GroupVersionKind() && known.GetNamespace() == sent.GetNamespace() && known.GetName() == sent.GetName() {
			c.applied[i] = sent
			return
		}
	}
	c.did("applied " + sent.GetKind() + " " + sent.GetName())
	c.applied = append(c.applied, sent)
}

// store stores the object like an API server, with the status of a complete object.
func (c *recordingClient) store(ctx context.Context, body *unstructured.Unstructured) (client.Object, error) {
	obj, err := c.Scheme().New(body.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	now := obj.(client.Object)                     //nolint:forcetypeassert // every child has metadata
	before := now.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(body), before)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	exists := err == nil
	if exists { // the status stays
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
		if err != nil {
			return nil, err
		}
		if status, ok := content["status"]; ok {
			body.Object["status"] = status
		}
		body.SetUID(before.GetUID())
		body.SetResourceVersion(before.GetResourceVersion())
		body.SetGeneration(before.GetGeneration())
	} else {
		body.SetUID(types.UID(engine.Hash(body.GetKind(), body.GetNamespace(), body.GetName())))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, now); err != nil {
		return nil, err
	}
	now.SetManagedFields(nil)
	if job, ok := now.(*batchv1.Job); ok {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, annotationResult, c.results[job.Labels[labelRunOf]])
	}
	complete(now)
	if exists {
		return now, c.Update(ctx, now)
	}
	return now, c.Create(ctx, now)
}

// complete sets the status that an object's controllers would report.
func complete(obj client.Object) {
	if obj.GetGeneration() == 0 {
		obj.SetGeneration(1)
	}
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		want := replicas(obj.Spec.Replicas)
		obj.Status.ObservedGeneration, obj.Status.Replicas, obj.Status.ReadyReplicas, obj.Status.AvailableReplicas = obj.Generation, want, want, want
	case *appsv1.Deployment:
		want := replicas(obj.Spec.Replicas)
		obj.Status.ObservedGeneration, obj.Status.Replicas, obj.Status.ReadyReplicas, obj.Status.AvailableReplicas, obj.Status.UpdatedReplicas = obj.Generation, want, want, want, want
	case *appsv1.DaemonSet:
		obj.Status.ObservedGeneration = obj.Generation
	case *batchv1.Job:
		obj.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	case engine.Object:
		completeConditions(obj)
	}
}

// completeConditions makes an object Ready, unless the fixture has a condition Ready.
func completeConditions(obj engine.Object) {
	status := obj.Common()
	status.ObservedGeneration = obj.GetGeneration()
	if meta.FindStatusCondition(status.Conditions, commonv1.ConditionReady) == nil {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: commonv1.ConditionReady, Status: metav1.ConditionTrue, Reason: engine.ReasonComplete})
	}
	for i := range status.Conditions {
		if status.Conditions[i].ObservedGeneration == 0 { // not set by the fixture
			status.Conditions[i].ObservedGeneration = obj.GetGeneration()
		}
	}
}

func replicas(want *int32) int32 {
	if want == nil {
		return 1
	}
	return *want
}

// random matches a generated value.
var random = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// nameGenerated replaces random values by "generated" and the key, and returns their keys.
func nameGenerated(object *unstructured.Unstructured) []string {
	data, found, _ := unstructured.NestedStringMap(object.Object, "data")
	if !found || object.GetKind() != secretKind {
		return nil
	}
	var keys []string
	for key, value := range data {
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && random.Match(decoded) {
			data[key] = base64.StdEncoding.EncodeToString([]byte("generated " + key))
			keys = append(keys, key)
		}
	}
	_ = unstructured.SetNestedStringMap(object.Object, data, "data")
	return keys
}

// discovered implements discovery with the kinds of a mapper.
type discovered struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func (d discovered) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, err
	}
	all := &metav1.APIResourceList{GroupVersion: groupVersion}
	for kind := range d.scheme.KnownTypes(gv) {
		if mapping, err := d.mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version); err == nil {
			all.APIResources = append(all.APIResources, metav1.APIResource{Kind: kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace})
		}
	}
	if len(all.APIResources) == 0 {
		return nil, errors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	return all, nil
}
