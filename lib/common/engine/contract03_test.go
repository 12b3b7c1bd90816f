package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract03NothingAtRest(t *testing.T) {
	contract{check: contract03, mutants: map[string]mutant{
		"has no managedFields in its cache": {
			seam: func(s *engine.Seam) {
				s.Cached = changingReader{s.Cached, func(obj client.Object) {
					if _, ok := obj.(*corev1.Service); ok {
						obj.SetManagedFields(nil)
					}
				}}
			},
			caught: `sent at rest`,
		},
		"compares only the annotation": {
			seam: func(s *engine.Seam) {
				s.Cached = changingReader{s.Cached, (&firstSight{seen: map[string][]metav1.ManagedFieldsEntry{}}).show}
			},
			caught: `is repaired`,
		},
		"reads Secrets again and again": {
			seam: func(s *engine.Seam) {
				s.Cached = changingReader{s.Cached, func(obj client.Object) {
					if obj.GetName() == "needed" {
						obj.SetResourceVersion(fmt.Sprint(1<<60 + time.Now().UnixNano()))
					}
				}}
			},
			caught: `sent at rest`,
		},
	}}.test(t)
}

// everything is a service that uses all features of a stage.
func everything(outside func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error)) service {
	return service{
		Name: owner,
		Stages: []stage{
			{Condition: "InputsReady", Needs: func(cr *widget.Widget) []engine.Need {
				return []engine.Need{engine.Secret(cr.Spec.SecretName, "password"), engine.ConfigMap("optional").Optional()}
			}},
			build("CredentialsReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Unowned(engine.Generated(secret(cr.Name+"-credentials"), "password"))}
			}),
			{Condition: "Registered", Needs: func(cr *widget.Widget) []engine.Need {
				return []engine.Need{engine.Secret(cr.Name+"-credentials", "password")}
			}, Do: outside},
			build("ConfigReady", func(cr *widget.Widget, in engine.Inputs) []engine.Child {
				return []engine.Child{
					configMap(cr.Name, cr.Spec.Text),
					secret(cr.Name + "-connections").WithData(in.Secret(cr.Spec.SecretName)),
				}
			}),
			build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Once(job(cr, cr.Name+"-sync"))}
			}),
			build("WorkloadReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{statefulSet(cr), serviceOf(cr), disruptionBudget(cr), when(false, configMap(cr.Name+"-never", ""))}
			}),
			build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{volume(cr)}
			}),
		},
		Teardown: []stage{
			build("VolumeGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Absent(volume(cr))}
			}),
			build("CredentialsGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Absent(engine.Unowned(secret(cr.Name + "-credentials")))}
			}),
		},
		Owns: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &appsv1.StatefulSet{}, &corev1.Service{},
			&policyv1.PodDisruptionBudget{}, &corev1.PersistentVolume{},
		},
	}
}

func registers(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
	return engine.Observed{"account": "made"}, nil
}

func (w *world) needed() {
	w.t.Helper()
	needed := w.secret("needed")
	needed.Data = map[string][]byte{"password": []byte("p4ssw0rd")}
	w.create(needed)
}

func contract03(w *world) {
	w.needed()
	enginetest.Kubelet{}.Start(w.t, w.namespace)
	start(w, everything(registers))
	cr := w.widget("rest", widget.Spec{Text: "first", SecretName: "needed", Replicas: new(int32(1))})
	w.awaitReady(cr)
	w.restsWhileOthersWrite(cr)
	for _, child := range w.ownedBy(cr) {
		w.repairsEveryField(cr, child)
	}
	w.awaitReady(cr)
	w.restsAfterRestart(cr)
}

// ownedBy lists the children of which the engine repairs every owned field.
func (w *world) ownedBy(cr *widget.Widget) []client.Object {
	return []client.Object{
		w.configMap(cr.Name), w.secret(cr.Name + "-connections"),
		&corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name)},
		&policyv1.PodDisruptionBudget{ObjectMeta: metaOf(w.namespace, cr.Name)},
		&appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)},
		&corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))},
	}
}

func (w *world) restsWhileOthersWrite(cr *widget.Widget) {
	w.t.Helper()
	for _, child := range append(w.ownedBy(cr), w.secret(cr.Name+"-credentials")) {
		w.sees(child)
	}
	for _, job := range w.jobs(cr.Name) {
		w.sees(&job)
	}
	w.pass(cr) // requests in progress end
	w.operator.Requests.Reset()
	for _, child := range w.ownedBy(cr) {
		w.annotate(child, "note", "foreign")
	}
	w.pass(cr)
	w.pass(cr)
	w.Expect(w.operator.Requests.All()).To(BeEmpty(), "sent at rest")
}

func (w *world) restsAfterRestart(cr *widget.Widget) {
	w.t.Helper()
	w.operator.Stop()
	w.mutant.options = append(w.mutant.options, func(_ *rest.Config, options *ctrl.Options) {
		options.Cache.SyncPeriod = new(time.Second)
	})
	before := w.watched.of(cr.Name)
	start(w, everything(registers))
	w.Eventually(func() int { return w.watched.of(cr.Name) }).Should(BeNumerically(">", before+3), "passes of a resync")
	w.Expect(w.operator.Requests.Writes()).To(BeEmpty(), "written after a restart")
	for _, request := range w.operator.Requests.Reads() {
		w.Expect(request.Verb == "watch" || request.Verb == "get" && request.Resource == "secrets").To(BeTrue(), "after a restart: %s", request)
	}
	w.Expect(w.operator.Requests.Of("get", "secrets")).To(HaveLen(3), "one read of each Secret that is needed, and of the key of hashes")
	w.operator.Requests.Reset()
	before = w.watched.of(cr.Name)
	w.Eventually(func() int { return w.watched.of(cr.Name) }).Should(BeNumerically(">", before+3), "passes of a resync")
	w.Expect(w.operator.Requests.All()).To(BeEmpty(), "sent at a resync")
	w.must(w.get(cr))
	w.Expect(w.condition(cr, "Ready")()).To(HavePrefix("True"))
}

// repairsEveryField checks every field that the engine owns of a child, after another client
// has changed or removed it.
func (w *world) repairsEveryField(cr *widget.Widget, child client.Object) {
	w.t.Helper()
	gvk := mustGVK(child)
	read := func() *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(child.GetNamespace())
		object.SetName(child.GetName())
		w.must(w.get(object))
		return object
	}
	original := read()
	fields := ownedFields(original)
	resource := map[string]string{
		"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "StatefulSet": "statefulsets",
		"PodDisruptionBudget": "poddisruptionbudgets", "PersistentVolume": "persistentvolumes",
	}[gvk.Kind]
	var tried, repairs int
	for _, drift := range driftsOf(original) {
		w.operator.Requests.Reset()
		object := read()
		if !drift.apply(object) {
			continue
		}
		version := object.GetResourceVersion()
		err := w.client.Update(w.ctx, object, client.FieldOwner("other-client"))
		if errors.IsInvalid(err) || errors.IsForbidden(err) || errors.IsBadRequest(err) || errors.IsConflict(err) {
			continue // the API server refuses the change
		}
		w.must(err)
		if object.GetResourceVersion() == version {
			continue // the API server has ignored the change
		}
		tried++
		isRepaired := func() bool { now := read(); return ownedFields(now) == fields && drift.holds(now) }
		w.Eventually(func() bool { return isRepaired() || w.leaves(cr, read()) }).Should(BeTrue(), "the engine sees %s %s", gvk.Kind, drift)
		w.Expect(isRepaired()).To(BeTrue(), "%s %s is repaired", gvk.Kind, drift)
		applied := w.operator.Requests.Of("apply", resource)
		repaired := w.operator.Requests.Of("patch", resource)
		if len(repaired) == 0 {
			w.Expect(applied).To(HaveLen(1), "%s %s is repaired by one write", gvk.Kind, drift)
		} else {
			// The patches alone may have repaired it.
			w.Eventually(func() []enginetest.Request { return w.operator.Requests.Of("apply", resource) }).Should(HaveLen(2), "%s %s is repaired after a merge patch", gvk.Kind, drift)
			repairs++
		}
	}
	w.Expect(tried).To(BeNumerically(">=", 8), "%s: fields that were changed", gvk.Kind)
	w.t.Logf("%s: %d changes repaired, %d of them after a merge patch", gvk.Kind, tried, repairs)
}

// changingReader changes the objects that are read from the cache.
type changingReader struct {
	client.Reader
	change func(client.Object)
}

func (r changingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if _, self := obj.(*widget.Widget); err == nil && !self {
		r.change(obj)
	}
	return err
}

// firstSight returns the managedFields of an object's first read in all reads.
type firstSight struct {
	seen map[string][]metav1.ManagedFieldsEntry
}

func (f *firstSight) show(obj client.Object) {
	key := fmt.Sprintf("%T %s %s", obj, obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
	if known, ok := f.seen[key]; ok {
		obj.SetManagedFields(known)
		return
	}
	f.seen[key] = obj.GetManagedFields()
}
