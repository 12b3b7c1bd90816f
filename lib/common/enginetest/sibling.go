package enginetest

import (
	"context"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// Sibling simulates the operator of a kind that another operator owns or needs: it only
// reports conditions, for each object's newest generation.
type Sibling struct {
	// Kind is any object of the kind.
	Kind engine.Object
	// Conditions are the condition types that its operator reports before Ready.
	Conditions []string
	// Report returns the first condition of an object that is not True, and its message; ""
	// for none. It may set other fields of the status. It is called repeatedly. nil: every
	// object is Ready.
	Report func(engine.Object) (condition, message string)
}

// Start starts the simulation for one namespace, until the test ends.
func (s Sibling) Start(t testing.TB, namespace string, addToScheme ...func(*runtime.Scheme) error) {
	t.Helper()
	scheme := Scheme(t, addToScheme...)
	c, err := client.NewWithWatch(Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	gvk, err := apiutil.GVKForObject(s.Kind, scheme)
	if err != nil {
		t.Fatal(err)
	}
	list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := s.follow(ctx, c, list.(client.ObjectList), namespace); err != nil && ctx.Err() == nil { //nolint:forcetypeassert // it is a list
				t.Errorf("watching %s: %v", gvk.Kind, err)
				return
			}
		}
	}()
}

// follow processes one watch to its end.
func (s Sibling) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string) error {
	w, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	alive := map[types.UID]engine.Object{}
	for {
		changed := maps.Clone(alive)
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			object, ok := event.Object.(engine.Object)
			if !ok {
				continue
			}
			alive[object.GetUID()] = object
			if event.Type == watch.Deleted {
				delete(alive, object.GetUID())
				continue
			}
			changed = map[types.UID]engine.Object{object.GetUID(): object}
		case <-again.C:
		}
		for _, object := range changed {
			reported := object.DeepCopyObject().(engine.Object) //nolint:forcetypeassert // a copy has the same type
			s.report(reported)
			if !equality.Semantic.DeepEqual(object, reported) {
				// If the object was deleted or changed, another event follows. A list of conditions
				// that is older than the stored one must not replace it.
				_ = c.Status().Patch(ctx, reported, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}), client.FieldOwner("played"))
			}
		}
	}
}

func (s Sibling) report(object engine.Object) {
	failing, message := "", ""
	if s.Report != nil {
		failing, message = s.Report(object)
	}
	status := object.Common()
	status.ObservedGeneration = object.GetGeneration()
	now := metav1.Condition{Status: metav1.ConditionTrue, Reason: engine.ReasonComplete}
	for _, condition := range append(s.Conditions, commonv1.ConditionReady) {
		if condition == failing {
			now = metav1.Condition{Status: metav1.ConditionFalse, Reason: engine.ReasonWaiting, Message: message}
		}
		now.Type, now.ObservedGeneration = condition, object.GetGeneration()
		meta.SetStatusCondition(&status.Conditions, now)
	}
}
