package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract10Isolation(t *testing.T) {
	contract{check: contract10, mutants: map[string]mutant{
		"works on one object at a time": {
			seam:   func(s *engine.Seam) { s.Workers = 1 },
			caught: `no call that hangs delays others`,
			hangs:  true,
		},
		"waits for a forbidden watch on every pass": {
			seam:   func(s *engine.Seam) { s.ReadTimeout = time.Hour },
			caught: `a kind that is forbidden is reported`,
			hangs:  true,
		},
		"guesses that a slow watch is forbidden": {
			seam: func(s *engine.Seam) {
				s.WatchFailure = func(schema.GroupVersionKind) error {
					return errors.NewForbidden(schema.GroupResource{}, "", nil)
				}
			},
			caught: `a slow list is no failure`,
		},
		"waits for every watch of the operator": {
			seam:   func(s *engine.Seam) { s.Cache = patientCache{s.Cache} },
			caught: `a slow controller starts`,
			hangs:  true,
		},
	}}.test(t)
}

func contract10(w *world) {
	w.hangingCall()
	limited := &rbacv1.Role{ObjectMeta: metaOf(w.namespace, w.namespace+"-limited"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"widgets", "widgets/status", "widgets/finalizers", "racks", "racks/status"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	}}
	w.as(limited)
	w.slowController()
	w.forbiddenKind(limited)
	w.slowKind()
}

// slowKind checks that a list that takes longer than the read timeout, for example after a
// restart of the API server, changes no condition, and that the engine continues when the list
// is complete.
func (w *world) slowKind() {
	w.t.Helper()
	s := service{Name: owner, Owns: owns[:1], Stages: []stage{configMaps("ConfigReady")}}
	start(w, s)
	cr := w.widget("slow", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.operator.Stop()

	release := w.slowList(s, cr, 3*readTimeout)
	defer release()
	w.Expect(w.condition(cr, "Ready")()).To(HavePrefix("True"), "a slow list is no failure")
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	release()
	w.Eventually(w.textOf(cr.Name)).Should(Equal("second"))
	w.awaitReady(cr)
	w.operator.Stop()
}

// slowList starts the service while the list of ConfigMaps is slow, until it has looked at the
// widget twice. The timeout bounds its reads and writes as well: on a machine that is too slow for
// it, the service starts again, with a longer one.
func (w *world) slowList(s service, cr *widget.Widget, timeout time.Duration) (release func()) {
	w.t.Helper()
	release = w.proxy.hold("configmaps")
	before := w.watched.of(cr.Name)
	start(w, s, func(s *engine.Seam) { s.ReadTimeout = timeout })
	w.Eventually(func() int { return w.watched.of(cr.Name) }).Should(BeNumerically(">", before+1), "passes while a list is slow")
	if !strings.Contains(w.condition(cr, "Ready")(), "deadline exceeded") || timeout > 10*readTimeout {
		return release
	}
	release()
	w.awaitReady(cr)
	w.operator.Stop()
	return w.slowList(s, cr, 4*timeout)
}

// slowController checks that a controller whose own list is slow starts although another
// controller of the operator watches a kind that is forbidden.
func (w *world) slowController() {
	w.t.Helper()
	fault := w.mutant.seam
	defer func() { w.mutant.seam, w.beside = fault, nil }()
	slow := seamed[*widget.Rack]{
		Service: engine.Service[*widget.Rack]{Name: "rack", Stages: []engine.Stage[*widget.Rack]{{Condition: "Found"}}},
		change: func(s *engine.Seam) { // a mutant has its fault in this controller alone
			if fault != nil {
				fault(s)
			}
		},
	}
	w.mutant.seam, w.beside = nil, []enginetest.Runnable{slow}
	release := w.proxy.hold("racks")
	defer release()
	start(w, service{Name: owner, Stages: []stage{build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{job(cr, cr.Name)}
	})}}, func(s *engine.Seam) { s.ReadTimeout = readTimeout })
	cr := w.widget("fast", widget.Spec{})
	w.Eventually(w.condition(cr, "SchemaReady")).Should(HavePrefix("False Error: Job cannot be watched"))
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "late")}
	w.create(rack)
	release()
	w.happens("a slow controller starts", w.condition(rack, "Ready"), HavePrefix("True"))
	w.operator.Stop()
}

// hangingCall checks that a call that hangs delays only its own object, and that a panic, an
// error and a stop delay no other object.
func (w *world) hangingCall() {
	w.t.Helper()
	called, released := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	start(w, service{
		Name: owner,
		Stages: []stage{
			{Condition: "Registered", Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
				switch cr.Spec.Text {
				case "panics":
					panic("no server") //nolint:forbidigo // as a bug would
				case "fails":
					return nil, fmt.Errorf("no route to host")
				case "stops":
					return nil, engine.Stop("Denied", "wrong password")
				case "hangs": // and ignores its deadline
					called <- struct{}{}
					<-released
				}
				return nil, nil
			}},
			configMaps("ConfigReady"),
		},
	})
	for name, expected := range map[string]string{
		"panics": "False Panic: stage Registered panicked: no server", "fails": "False Error: no route to host", "stops": "False Denied: wrong password",
	} {
		cr := w.widget(name, widget.Spec{Text: name})
		w.Eventually(w.condition(cr, "Registered")).Should(Equal(expected))
	}
	hangs := w.widget("hangs", widget.Spec{Text: "hangs"})
	<-called
	var others []*widget.Widget
	for i := range 20 {
		others = append(others, w.widget(fmt.Sprintf("other-%d", i), widget.Spec{Text: "fine"}))
	}
	for _, other := range others {
		w.happens("no call that hangs delays others", w.condition(other, "Ready"), HavePrefix("True"))
	}
	w.must(w.get(hangs))
	w.Expect(hangs.Status.Conditions).To(BeEmpty(), "the call still hangs")
	release()
	w.awaitReady(hangs)
	w.operator.Stop()
}

// forbiddenKind checks that a missing right fails only one stage, with the name of the kind,
// and that the stage continues when the right is granted.
func (w *world) forbiddenKind(role *rbacv1.Role) {
	w.t.Helper()
	start(w, service{Name: owner, Stages: []stage{
		configMaps("ConfigReady"),
		build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			switch cr.Spec.Text {
			case "job":
				return []engine.Child{job(cr, cr.Name)}
			case "service": // of a kind that is watched after the forbidden kind
				return []engine.Child{serviceOf(cr)}
			}
			return nil
		}),
	}}, func(s *engine.Seam) { s.ReadTimeout = time.Second })
	forbidden := w.widget("forbidden", widget.Spec{Text: "job"})
	for i := range 20 {
		w.widget(fmt.Sprintf("another-%d", i), widget.Spec{Text: "job"})
	}
	w.happens("a kind that is forbidden is reported", w.condition(forbidden, "SchemaReady"), Equal("False Error: Job cannot be watched: check that the operator has the rights to list and watch this kind"))
	allowed := w.widget("allowed", widget.Spec{Text: "no job"})
	w.awaitReady(allowed)
	w.awaitReady(w.widget("later", widget.Spec{Text: "service"}))
	before := role.DeepCopy()
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	w.must(w.client.Patch(w.ctx, role, client.MergeFrom(before)))
	w.Eventually(w.condition(forbidden, "SchemaReady")).Should(HavePrefix("False Progressing: Job forbidden is not complete"))
	w.operator.Stop()
}

// patientCache has informers that are ready when all informers are ready.
type patientCache struct{ cache.Cache }

func (c patientCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	return patientInformer{informer, func() bool { return c.WaitForCacheSync(ctx) }}, err
}

type patientInformer struct {
	cache.Informer
	waitForAll func() bool
}

func (i patientInformer) HasSyncedChecker() toolscache.DoneChecker {
	all := allSynced(make(chan struct{}))
	go func() {
		<-i.Informer.HasSyncedChecker().Done()
		if i.waitForAll() {
			close(all)
		}
	}()
	return all
}

type allSynced chan struct{}

func (allSynced) Name() string            { return "all" }
func (a allSynced) Done() <-chan struct{} { return a }
