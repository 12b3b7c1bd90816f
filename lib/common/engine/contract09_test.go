package engine_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract09Deletion(t *testing.T) {
	contract{check: contract09, mutants: map[string]mutant{
		"adds its finalizer later": {
			seam:   func(s *engine.Seam) { s.Client = lateFinalizer{s.Client} },
			caught: `finalizer before the first effect`,
		},
		"believes a cache that is behind": {
			seam:   func(s *engine.Seam) { s.Live = blindReader{s.Live} },
			caught: `until the volume is deleted|Secret of the teardown still exists`,
		},
		"owns a Secret that its teardown needs": {
			seam:   func(s *engine.Seam) { s.Client = owningClient{s.Client} },
			caught: `Secret of the teardown`,
		},
	}}.test(t)
}

func contract09(w *world) {
	w.needed()
	enginetest.Kubelet{}.Start(w.t, w.namespace)
	w.hasFinalizerFirst()
	w.tearsDown("background", metav1.DeletePropagationBackground)
	w.tearsDown("foreground", metav1.DeletePropagationForeground)
	w.abandons()
	w.waitsUntilGone()
	w.readsOnceWhatIsGone()
	w.deletesOnce()
	w.waitsForDiscovery()
	w.remembersWhatWasNotAnswered()
}

func (w *world) hasFinalizerFirst() {
	w.t.Helper()
	var first atomic.Pointer[[]string]
	start(w, service{
		Name: owner,
		Stages: []stage{{Condition: "Registered", Do: func(ctx context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
			stored := cr.DeepCopy()
			err := w.client.Get(ctx, client.ObjectKeyFromObject(cr), stored)
			first.CompareAndSwap(nil, &stored.Finalizers)
			return nil, err
		}}},
		Teardown: []stage{{Condition: "Unregistered"}},
	})
	cr := w.widget("finalizer", widget.Spec{})
	w.awaitReady(cr)
	w.Expect(*first.Load()).To(ContainElement("test.asterism.dev/widget"), "the finalizer before the first effect")
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.operator.Stop()
}

// collects does in a foreground deletion what Kubernetes' garbage collector does, which pauses
// for minutes while other tests install and remove kinds.
func (w *world) collects(cr *widget.Widget, children ...client.Object) {
	w.t.Helper()
	for _, child := range children {
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, child)))
		w.Eventually(func() bool { return w.gone(child) }).Should(BeTrue())
	}
	w.Eventually(func() error {
		w.must(w.get(cr))
		controllerutil.RemoveFinalizer(cr, metav1.FinalizerDeleteDependents)
		return w.client.Update(w.ctx, cr)
	}).Should(Succeed())
}

// tearsDown checks that the teardown runs in order, and that the finalizer is removed when
// all children are deleted; also after a restart, with an empty cache.
func (w *world) tearsDown(name string, how metav1.DeletionPropagation) {
	w.t.Helper()
	start(w, everything(registers))
	cr := w.widget(name, widget.Spec{SecretName: "needed", Replicas: new(int32(1))})
	w.awaitReady(cr)
	pv := w.holdVolume(cr)
	credentials, config := w.secret(cr.Name+"-credentials"), w.configMap(cr.Name)
	w.must(w.get(credentials))
	uid := credentials.UID
	w.Expect(credentials.OwnerReferences).To(BeEmpty(), "the garbage collector must not delete the Secret of the teardown")

	w.must(w.client.Delete(w.ctx, cr, client.PropagationPolicy(how)))
	w.decides(w.condition(cr, "Ready"), ContainSubstring("PersistentVolume %s is being deleted, waiting for finalizer test.asterism.dev/held", pv.Name), HaveSuffix("not found"), "the widget stays until the volume is deleted")
	if how == metav1.DeletePropagationForeground {
		w.collects(cr, config) // what the widget owns goes first
	}
	w.Expect(w.uid(credentials)).To(Equal(uid), "the Secret of the teardown still exists")

	w.operator.Stop()
	start(w, everything(registers), func(s *engine.Seam) { s.Cached = blindReader{s.Cached} })
	w.Eventually(func() int { return len(w.operator.Requests.Of("get", "persistentvolumes")) + boolInt(w.gone(cr)) }).Should(BeNumerically(">", 0))
	w.Expect(w.gone(cr)).To(BeFalse(), "the widget stays until the volume is deleted")
	w.pass(cr)
	w.Expect(w.gone(cr)).To(BeFalse(), "the widget stays until the volume is deleted")
	w.operator.Stop()

	start(w, everything(registers))
	w.letVolumeGo(pv)
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.Expect(w.gone(pv) && w.gone(credentials)).To(BeTrue())
	w.operator.Stop()
}

// abandons checks that an abandoned stage is reported once, and that the teardown continues.
func (w *world) abandons() {
	w.t.Helper()
	var calls atomic.Int32
	start(w, service{
		Name: owner,
		Stages: []stage{build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{volume(cr)}
		})},
		Teardown: []stage{
			{Condition: "Unregistered", Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
				calls.Add(1)
				return nil, engine.Abandon("account w3 at db.example")
			}},
			build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Absent(volume(cr))}
			}),
		},
	})
	cr := w.widget("abandons", widget.Spec{})
	w.awaitReady(cr)
	pv := w.holdVolume(cr)
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(w.condition(cr, "Ready")).Should(ContainSubstring("VolumeGone"))
	w.pass(cr)
	w.Expect(calls.Load()).To(Equal(int32(1)), "an abandoned stage is not tried again")
	w.Eventually(func() []string { return w.events(cr, "LeftBehind") }).Should(ConsistOf(ContainSubstring("account w3 at db.example")))
	w.letVolumeGo(pv)
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.operator.Stop()
}

// TestWhatIsBeingDeletedIsNotReady, although nothing is torn down: Kubernetes deletes the children
// first, or another client has a finalizer.
func TestWhatIsBeingDeletedIsNotReady(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("ConfigReady")}})
	cr := w.widget("goes", widget.Spec{})
	w.awaitReady(cr)
	hold := func(finalizers string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
		w.must(w.client.Patch(w.ctx, cr, patch))
	}
	hold(`["test.asterism.dev/held"]`)
	w.must(w.client.Delete(w.ctx, cr, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False Deleting: waiting for the finalizers test.asterism.dev/held"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("Unknown Deleting"))
	hold("null")
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
}

// TestTheEventOfWhatIsLeftBehindIsWrittenAgain if the API server has not accepted it.
func TestTheEventOfWhatIsLeftBehindIsWrittenAgain(t *testing.T) {
	w := newTestWorld(t)
	pod := &corev1.Pod{ObjectMeta: metaOf(w.namespace, "operator")}
	var refusals atomic.Int32
	refusals.Store(2)
	start(w, service{
		Name: owner, Stages: []stage{configMaps("ConfigReady")},
		Teardown: []stage{{Condition: "Unregistered", Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			return nil, engine.Abandon("account w3 at db.example")
		}}},
	}, func(s *engine.Seam) {
		s.Client, s.Pod = eventless{s.Client, &refusals}, &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	})
	cr := w.widget("leaves", widget.Spec{})
	w.awaitReady(cr)
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.Expect(w.events(pod, "LeftBehind")).To(ConsistOf(ContainSubstring("Unregistered: account w3 at db.example")))
}

// eventless refuses a number of events.
type eventless struct {
	client.Client
	refusals *atomic.Int32
}

func (c eventless) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if _, ok := obj.(*corev1.Event); ok && c.refusals.Add(-1) >= 0 {
		return errors.NewServiceUnavailable("busy")
	}
	return c.Client.Create(ctx, obj, opts...)
}

// waitsUntilGone checks that the walk continues only after the deletion of an Absent child,
// also if the same child was applied before.
func (w *world) waitsUntilGone() {
	w.t.Helper()
	start(w, service{Name: owner, Stages: []stage{
		build("OldGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{when(cr.Spec.Text == "first", configMap(cr.Name+"-old", ""))}
		}),
		build("NewReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{when(cr.Spec.Text != "first", configMap(cr.Name+"-new", ""))}
		}),
	}})
	cr := w.widget("until", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	old := w.configMap(cr.Name + "-old")
	w.must(w.get(old))
	controllerutil.AddFinalizer(old, "test.asterism.dev/held")
	w.must(w.client.Update(w.ctx, old))
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "OldGone")).Should(ContainSubstring("being deleted"))
	w.pass(cr)
	w.Expect(w.gone(w.configMap(cr.Name+"-new"))).To(BeTrue(), "the walk does not continue before the deletion")
	w.must(w.get(old))
	controllerutil.RemoveFinalizer(old, "test.asterism.dev/held")
	w.must(w.client.Update(w.ctx, old))
	w.awaitReady(cr)
	w.operator.Stop()
}

// readsOnceWhatIsGone checks that one live read verifies the absence of a child.
func (w *world) readsOnceWhatIsGone() {
	w.t.Helper()
	proofs := &absences{reads: map[types.UID]int{}}
	start(w, service{
		Name: owner,
		Stages: []stage{build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{volume(cr)}
		})},
		Teardown: []stage{build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Absent(volume(cr))}
		})},
	}, func(s *engine.Seam) { proofs.Reader, s.Live = s.Live, proofs })
	for i := 0; i < 5 || i < 50 && !proofs.one(); i++ { // while the watch is behind, a pass reads twice
		cr := w.widget(fmt.Sprintf("shown-%d", i), widget.Spec{})
		w.awaitReady(cr)
		w.must(w.client.Delete(w.ctx, cr))
		w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	}
	w.operator.Stop()
	w.Expect(proofs.one()).To(BeTrue(), "one live read verifies the absence: %v", proofs.reads)
	w.Expect(proofs.reads).To(HaveEach(BeNumerically("<=", 2)), "one live read verifies the absence")
}

// absences counts the reads of volumes that do not exist, by pass: after a slow watch, another
// pass repeats the proof.
type absences struct {
	client.Reader
	mu    sync.Mutex
	reads map[types.UID]int
}

// one tells whether a pass has read once.
func (r *absences) one() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(r.reads)), 1)
}

func (r *absences) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if _, ok := obj.(*corev1.PersistentVolume); ok && errors.IsNotFound(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reads[controller.ReconcileIDFromContext(ctx)]++
	}
	return err
}

// deletesOnce checks that a child is deleted once, although the watch does not show the
// deletion for some time.
func (w *world) deletesOnce() {
	w.t.Helper()
	start(w, service{
		Name: owner,
		Stages: []stage{build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{volume(cr)}
		})},
		Teardown: []stage{build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Absent(volume(cr))}
		})},
	}, func(s *engine.Seam) {
		s.Cached = undeleted{s.Cached, map[string]*corev1.PersistentVolume{}, &sync.Mutex{}}
		s.Cache = filteredCache{s.Cache, func(event any) bool {
			volume, ok := event.(*corev1.PersistentVolume)
			return !ok || volume.DeletionTimestamp == nil
		}}
	})
	cr := w.widget("once", widget.Spec{})
	w.awaitReady(cr)
	pv := w.holdVolume(cr)
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False Deleting"))
	for range 3 {
		w.pass(cr)
	}
	live := func() int { w.pass(cr); return len(w.operator.Requests.Of("get", "persistentvolumes")) }
	w.Eventually(live).Should(BeNumerically(">", 0), "a remembered deletion expires")
	w.Expect(w.operator.Requests.Of("delete", "persistentvolumes")).To(HaveLen(1), "the deletion is not repeated")
	w.letVolumeGo(pv)
	w.operator.Stop()
}

// waitsForDiscovery checks the wait for discovery: a kind that could not be discovered may
// have objects.
func (w *world) waitsForDiscovery() {
	w.t.Helper()
	volumes := service{
		Name: owner, Owns: []client.Object{&corev1.PersistentVolume{}},
		Stages: []stage{build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{volume(cr)}
		})},
		Teardown: []stage{build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Absent(volume(cr))}
		})},
	}
	start(w, volumes)
	cr := w.widget("undiscovered", widget.Spec{})
	w.awaitReady(cr)
	w.operator.Stop()
	var works atomic.Bool
	start(w, volumes, func(s *engine.Seam) {
		s.Discover = func() error {
			if works.Load() {
				return nil
			}
			return errors.NewServiceUnavailable("starting")
		}
	})
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(w.condition(cr, "Ready")).Should(ContainSubstring("discovering PersistentVolume"))
	works.Store(true)
	pv := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))}
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.Expect(w.gone(pv)).To(BeTrue(), "no volume remains")
	w.operator.Stop()
}

// holdVolume delays the deletion of the widget's volume until letVolumeGo.
func (w *world) holdVolume(cr *widget.Widget) *corev1.PersistentVolume {
	w.t.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))}
	held := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"test.asterism.dev/held"}]`))
	w.must(w.client.Patch(w.ctx, pv, held))
	return pv
}

func (w *world) letVolumeGo(pv *corev1.PersistentVolume) {
	w.t.Helper()
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	w.must(w.client.Patch(w.ctx, pv, none))
}

// undeleted is a watch that is behind: it shows volumes as they were before their deletion.
type undeleted struct {
	client.Reader
	shown map[string]*corev1.PersistentVolume
	mu    *sync.Mutex
}

func (r undeleted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if volume, ok := obj.(*corev1.PersistentVolume); ok && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if volume.DeletionTimestamp == nil {
			r.shown[key.Name] = volume.DeepCopy()
		} else if before := r.shown[key.Name]; before != nil {
			before.DeepCopyInto(volume)
		}
	}
	return err
}

// remembersWhatWasNotAnswered checks an object that was created, although neither the answer
// to the write nor the watch shows it.
func (w *world) remembersWhatWasNotAnswered() {
	w.t.Helper()
	var lost lostAnswers
	start(w, service{
		Name: owner,
		Stages: []stage{build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{when(cr.Spec.Text == "wanted", volume(cr))}
		})},
		Teardown: []stage{build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Absent(volume(cr))}
		})},
	}, func(s *engine.Seam) {
		s.Client = lossyClient{s.Client, &lost}
		s.Cached = blindAfter{s.Cached, &lost}
	})
	cr := w.widget("unanswered", widget.Spec{Text: "wanted"})
	w.awaitReady(cr)
	pv := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))}
	w.change(cr, func(s *widget.Spec) { s.Text = "unwanted" })
	w.Eventually(func() bool { return w.gone(pv) }).Should(BeTrue())
	w.awaitReady(cr)

	deleted := cr.DeepCopy()
	lost.next(func() { w.must(w.client.Delete(w.ctx, deleted)) })
	w.change(cr, func(s *widget.Spec) { s.Text = "wanted" })
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.Expect(w.gone(pv)).To(BeTrue(), "a volume that was created without an answer is deleted")
	w.operator.Stop()
}

// lostAnswers breaks the connection after the next apply; from then on the watch of
// volumes shows nothing.
type lostAnswers struct {
	meanwhile atomic.Pointer[func()]
	blind     atomic.Bool
}

func (l *lostAnswers) next(meanwhile func()) { l.meanwhile.Store(&meanwhile) }

type lossyClient struct {
	client.Client
	lost *lostAnswers
}

func (c lossyClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := c.Client.Apply(ctx, obj, opts...)
	if meanwhile := c.lost.meanwhile.Swap(nil); err == nil && meanwhile != nil {
		c.lost.blind.Store(true)
		(*meanwhile)()
		return errors.NewInternalError(io.ErrUnexpectedEOF)
	}
	return err
}

type blindAfter struct {
	client.Reader
	lost *lostAnswers
}

func (r blindAfter) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if r.lost.blind.Load() {
		return blindReader{r.Reader}.Get(ctx, key, obj, opts...)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// events about an object with the reason.
func (w *world) events(obj client.Object, reason string) []string {
	w.t.Helper()
	var notes []string
	for _, event := range w.eventsAbout(obj) {
		if event.Reason == reason {
			note := event.Note
			if event.DeprecatedCount > 1 {
				note = fmt.Sprintf("%d times: %s", event.DeprecatedCount, note)
			}
			notes = append(notes, note)
		}
	}
	return notes
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lateFinalizer does not write the finalizer.
type lateFinalizer struct{ client.Client }

func (c lateFinalizer) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if data, err := patch.Data(obj); err == nil && strings.Contains(string(data), "finalizers") {
		return nil
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// blindReader does not see volumes.
type blindReader struct{ client.Reader }

func (r blindReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.PersistentVolume); ok {
		return errors.NewNotFound(schema.GroupResource{Resource: "persistentvolumes"}, key.Name)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// owningClient gives an owner to every Secret.
type owningClient struct{ client.Client }

func (c owningClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if body := bodyOf(obj); body.GetKind() == "Secret" {
		body.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: widget.GroupVersion.String(), Kind: "Widget", Name: body.GetLabels()["app.kubernetes.io/instance"],
			UID: types.UID(body.GetLabels()["asterism.dev/owner-uid"]), Controller: new(true), BlockOwnerDeletion: new(true),
		}})
	}
	return c.Client.Apply(ctx, obj, opts...)
}
