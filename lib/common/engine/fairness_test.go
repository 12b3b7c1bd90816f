package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// silentServer returns the address of a server that accepts connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return listener.Addr().String()
}

func ask(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Now()) })()
	_, err = connection.Read(make([]byte, 1))
	return err
}

// TestASilentServerDelaysNoOtherNamespace: a server of one namespace that does not answer takes
// DoTimeout of every call. The times are compared with those of an operator without such a
// namespace, at the same time on the same machine, which may be busy: that delays some of them.
func TestASilentServerDelaysNoOtherNamespace(t *testing.T) {
	w, calm := newTestWorld(t), newWorld(t, t, mutant{})
	address, other := silentServer(t), enginetest.Namespace(t)
	w.mutant.options = []enginetest.Option{alsoWatch(other)}
	var calls, at atomic.Int32
	var most atomic.Int32
	registers := service{Name: owner, Owns: owns, Stages: []stage{
		{Condition: "Registered", Do: func(ctx context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
			if cr.Namespace != w.namespace {
				return nil, nil
			}
			calls.Add(1)
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			return nil, ask(ctx, address)
		}},
		configMaps("ConfigReady"),
	}}
	start(w, registers)
	start(calm, registers)
	elsewhere := &widget.Widget{ObjectMeta: metaOf(other, "elsewhere"), Spec: widget.Spec{Text: "0"}}
	alone := &widget.Widget{ObjectMeta: metaOf(calm.namespace, "alone"), Spec: widget.Spec{Text: "0"}}
	w.create(elsewhere)
	calm.create(alone)
	took := func(w *world, cr *widget.Widget, text string) time.Duration {
		began := time.Now()
		w.change(cr, func(s *widget.Spec) { s.Text = text })
		w.awaitReady(cr)
		return time.Since(began)
	}
	for i := range 600 {
		w.widget(fmt.Sprintf("silent-%d", i), widget.Spec{})
	}
	w.Eventually(calls.Load).Should(BeNumerically(">=", 8))
	var loaded, unloaded []time.Duration
	for i := range 5 {
		text := fmt.Sprintf("loaded %d", i)
		loaded, unloaded = append(loaded, took(w, elsewhere, text)), append(unloaded, took(calm, alone, text))
	}
	slices.Sort(loaded)
	slices.Sort(unloaded)
	t.Logf("Ready after %s, alone after %s", loaded, unloaded)
	w.Expect(loaded[0]).To(BeNumerically("<", max(2*time.Second, 2*unloaded[0])), "the least of %s, alone of %s", loaded, unloaded)
	w.Expect(loaded[2]).To(BeNumerically("<", max(engine.DoTimeout, 2*unloaded[2])), "the median of %s, alone of %s: it waits for no call", loaded, unloaded)
	w.Expect(most.Load()).To(BeNumerically("<=", 8), "concurrent calls of one namespace")
	refused := w.condition(&widget.Widget{ObjectMeta: metaOf(w.namespace, "silent-599")}, "Registered")
	w.Eventually(refused).Should(Or(HavePrefix("False Waiting: "), HavePrefix("False Error: ")), "an object without a call has a condition")
}

// TestThePauseGrowsForASilentServer, and not for a server that refuses at once.
func TestThePauseGrowsForASilentServer(t *testing.T) {
	g := NewWithT(t)
	g.Expect(engine.DoPause(1, 0)).To(Equal(400 * time.Millisecond))
	g.Expect(engine.DoPause(30, 0)).To(Equal(30 * time.Second))
	g.Expect(engine.DoPause(30, time.Minute)).To(Equal(30 * time.Second))
	g.Expect(engine.DoPause(30, time.Hour)).To(Equal(5 * time.Minute))
}

// TestAChangedSpecEndsTheLongPause of an object whose server was silent, because the change may
// name another server.
func TestAChangedSpecEndsTheLongPause(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(widget.AddToScheme(scheme)).To(Succeed())
	var calls []string
	call := engine.DoAfterSilence(stage{
		Condition: "Registered", Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
			calls = append(calls, cr.Spec.Text)
			return nil, errors.New("the server does not answer")
		},
	}, scheme)
	cr := &widget.Widget{ObjectMeta: metaOf("n", "silent"), Spec: widget.Spec{Text: "silent"}}
	g.Expect(call(t.Context(), cr)).To(BeZero())
	g.Expect(call(t.Context(), cr)).To(BeNumerically("~", 5*time.Minute, time.Minute))
	cr.Spec.Text = "other"
	g.Expect(call(t.Context(), cr)).To(BeZero(), "the changed spec is tried at once")
	g.Expect(call(t.Context(), cr)).To(BeNumerically("~", 5*time.Minute, time.Minute))
	g.Expect(calls).To(Equal([]string{"silent", "other"}))
}

// TestAFailureKeepsTheTimers of other stages.
func TestAFailureKeepsTheTimers(t *testing.T) {
	w := newTestWorld(t)
	var failures, calls atomic.Int32
	start(w, service{Name: owner, Owns: owns, Stages: []stage{
		{Condition: "Fails", Continue: true, Build: func(*widget.Widget, engine.Inputs) ([]engine.Child, error) {
			failures.Add(1)
			return nil, errors.New("odd")
		}},
		{
			Condition: "Repeats", Every: func(*widget.Widget) time.Duration { return 200 * time.Millisecond },
			Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
				calls.Add(1)
				return nil, nil
			},
		},
	}})
	w.widget("fails", widget.Spec{})
	w.Eventually(failures.Load).Should(BeNumerically(">=", 6))
	before := calls.Load()
	w.Eventually(calls.Load).WithTimeout(2*time.Minute).Should(BeNumerically(">", before+4), "five passes with back-off alone need more than two minutes")
}

// hangingClient never answers an apply.
type hangingClient struct{ client.Client }

func (c hangingClient) Apply(ctx context.Context, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestWritesHaveADeadline, for example if a webhook hangs.
func TestWritesHaveADeadline(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("ConfigReady")}}, func(s *engine.Seam) {
		s.Client, s.ReadTimeout = hangingClient{s.Client}, readTimeout
	})
	cr := w.widget("hangs", widget.Spec{})
	w.Eventually(w.condition(cr, "ConfigReady")).Should(And(HavePrefix("False Error: applying ConfigMap hangs"), ContainSubstring("deadline")))
}

// refusingClient refuses writes of objects of some kinds.
type refusingClient struct{ client.Client }

func (c refusingClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errors.New("a webhook refuses the patch")
}

func (c refusingClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errors.New("a webhook refuses the deletion")
}

// TestRefusedWritesAreConditions, also of the finalizer and of children that nobody lists.
func TestRefusedWritesAreConditions(t *testing.T) {
	w := newTestWorld(t)
	lingering := build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{engine.Lingering(configMap(cr.Name+"-"+cr.Spec.Text, ""))}
	})
	start(w, service{Name: owner, Owns: owns, Stages: []stage{lingering}}, func(s *engine.Seam) { s.Client = refusingClient{s.Client} })
	cr := w.widget("refused", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "Ready")).Should(And(HavePrefix("False Error: deleting ConfigMap refused-first"), ContainSubstring("a webhook refuses")))
	w.operator.Stop()

	start(w, service{Name: owner, Owns: owns, Stages: []stage{lingering}, Teardown: []stage{{Condition: "Gone"}}}, func(s *engine.Seam) { s.Client = refusingClient{s.Client} })
	other := w.widget("blank", widget.Spec{Text: "first"})
	w.Eventually(w.condition(other, "Ready")).Should(And(HavePrefix("False Error: patching the finalizers"), ContainSubstring("a webhook refuses")))
	w.Expect(w.gone(w.configMap("blank-first"))).To(BeTrue(), "no effect before the finalizer")
	w.operator.Stop()

	withTeardown := service{Name: owner, Owns: owns, Stages: []stage{lingering}, Teardown: []stage{{Condition: "Gone"}}}
	start(w, withTeardown)
	w.awaitReady(other)
	w.operator.Stop()
	w.must(w.client.Delete(w.ctx, other))
	start(w, withTeardown, func(s *engine.Seam) { s.Client = refusingClient{s.Client} })
	w.Eventually(w.condition(other, "Ready")).Should(And(HavePrefix("False Error: patching the finalizers"), ContainSubstring("a webhook refuses")))
	w.operator.Stop()
	start(w, withTeardown)
	w.Eventually(func() bool { return w.gone(other) }).Should(BeTrue())
}

// TestPodsAreCachedByLabel: the pods of other programs would need much memory.
func TestPodsAreCachedByLabel(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{Condition: "Listed", Needs: func(*widget.Widget) []engine.Need {
		return []engine.Need{engine.Labelled[*corev1.Pod](nil).Need}
	}}}})
	w.awaitReady(w.widget("pods", widget.Spec{}))
	watched := w.operator.Requests.Of("watch", "pods")
	w.Expect(watched).NotTo(BeEmpty())
	for _, request := range watched {
		w.Expect(request.Query).To(ContainSubstring("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dasterism"))
	}
}
