package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// outside simulates an external server at which operators register.
type outside struct {
	mu    sync.Mutex
	calls []string // object and password of each call
	fail  error
}

func (o *outside) register(_ context.Context, cr *widget.Widget, in engine.Inputs) (engine.Observed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf("%s %s", cr.Spec.Text, in.Secret(cr.Spec.SecretName)["password"]))
	if o.fail != nil {
		return nil, o.fail
	}
	return engine.Observed{"account": "account of " + cr.Spec.Text}, nil
}

func (o *outside) breaks(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

func (o *outside) called() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.calls...)
}

func (o *outside) service(every time.Duration) service {
	return service{Name: owner, Owns: owns, Stages: []stage{
		{
			Condition: "Registered", Every: func(*widget.Widget) time.Duration { return every }, Do: o.register,
			Needs: func(cr *widget.Widget) []engine.Need {
				return []engine.Need{engine.Secret(cr.Spec.SecretName, "password")}
			},
		},
		build("ConfigReady", func(cr *widget.Widget, in engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name, in.Observed("Registered")["account"])}
		}),
	}}
}

func newTestWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	return newWorld(t, t, mutant{})
}

func TestDoRunsWhenItsInputsChange(t *testing.T) {
	w := newTestWorld(t)
	w.needed()
	var server outside
	start(w, server.service(0))
	spec := widget.Spec{Text: "first", SecretName: "needed"}
	cr := w.widget("do", spec)
	w.awaitReady(cr)
	w.pass(cr)
	w.Expect(server.called()).To(Equal([]string{"first p4ssw0rd"}))

	needed := w.secret("needed")
	w.must(w.get(needed))
	needed.Data["password"] = []byte("changed")
	w.must(w.client.Update(w.ctx, needed))
	w.Eventually(server.called).Should(Equal([]string{"first p4ssw0rd", "first changed"}))
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(server.called).Should(HaveLen(3))
	w.awaitReady(cr)

	w.operator.Stop()
	start(w, server.service(0))
	w.pass(cr)
	w.Expect(server.called()).To(HaveLen(3), "a restart does not call Do")
	w.must(w.get(cr))
	w.Expect(cr.Status.Completed[0].Observed).To(HaveKeyWithValue("account", "account of second"))

	w.must(w.client.Delete(w.ctx, cr))
	w.widget("do", widget.Spec{Text: "second", SecretName: "needed"})
	w.Eventually(server.called).Should(HaveLen(4), "another object of that name is a reason")
}

// TestDoRunsAgainForFormerInputs: a call for other inputs in between may have had an effect,
// although it failed.
func TestDoRunsAgainForFormerInputs(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint(restart), func(t *testing.T) {
			w := newTestWorld(t)
			w.needed()
			var server outside
			start(w, server.service(0))
			cr := w.widget("back", widget.Spec{Text: "first", SecretName: "needed"})
			w.awaitReady(cr)
			server.breaks(errors.New("half done"))
			w.change(cr, func(s *widget.Spec) { s.Text = "second" })
			w.Eventually(w.condition(cr, "Registered")).Should(HavePrefix("False Error: half done"))
			if restart {
				w.operator.Stop()
				start(w, server.service(0))
			}
			server.breaks(nil)
			calls := len(server.called())
			w.change(cr, func(s *widget.Spec) { s.Text = "first" })
			w.awaitReady(cr)
			w.Expect(server.called()[calls:]).To(ContainElement("first p4ssw0rd"))
		})
	}
}

// TestDoRunsAgainIfTheStatusIsLost: the process that has called Do for other inputs may end
// before it has written the status.
func TestDoRunsAgainIfTheStatusIsLost(t *testing.T) {
	w := newTestWorld(t)
	w.needed()
	var server outside
	start(w, server.service(0))
	cr := w.widget("lost", widget.Spec{Text: "first", SecretName: "needed"})
	w.awaitReady(cr)
	w.operator.Stop()
	start(w, server.service(0), func(s *engine.Seam) { s.Client = statusClient{s.Client, loseStatus} })
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(server.called).Should(ContainElement("second p4ssw0rd"))
	w.operator.Stop()
	calls := len(server.called())
	w.change(cr, func(s *widget.Spec) { s.Text = "first" })
	start(w, server.service(0))
	w.awaitReady(cr)
	w.Expect(server.called()[calls:]).To(ContainElement("first p4ssw0rd"))
}

// TestDoThatEndsWithoutAFailureIsNotCalledForEveryEvent, and is called after the last event.
func TestDoThatEndsWithoutAFailureIsNotCalledForEveryEvent(t *testing.T) {
	for expected, end := range map[string]error{
		"False Waiting: for the server": engine.Wait("for the server"), "False Odd: the server is odd": engine.Stop("Odd", "the server is odd"),
	} {
		t.Run(expected, func(t *testing.T) {
			w := newTestWorld(t)
			w.needed()
			var server outside
			server.breaks(end)
			start(w, server.service(0))
			cr := w.widget("waits", widget.Spec{Text: "first", SecretName: "needed"})
			w.Eventually(w.condition(cr, "Registered")).Should(Equal(expected))
			began, calls := time.Now(), len(server.called())
			for range 5 {
				w.pass(cr)
			}
			w.Expect(len(server.called())-calls).To(BeNumerically("<=", 1+time.Since(began)/(400*time.Millisecond)), "calls in 15 passes")
			w.Expect(w.condition(cr, "Registered")()).To(Equal(expected))
			stalled := HavePrefix("True")
			if engine.Reason(end) == engine.ReasonWaiting {
				stalled = Equal("absent")
			}
			w.Expect(w.condition(cr, "Stalled")()).To(stalled)
			server.breaks(nil)
			w.annotate(cr, "changed", "last")
			w.awaitReady(cr)
		})
	}
}

// TestADoThatPanicsBacksOff, whatever events arrive meanwhile.
func TestADoThatPanicsBacksOff(t *testing.T) {
	w := newTestWorld(t)
	var calls atomic.Int64
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Registered", Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
			if calls.Add(1); cr.Spec.Text == "panic" {
				panic("an answer without a body") //nolint:forbidigo // as a bug would
			}
			return nil, nil
		},
	}}})
	cr := w.widget("panics", widget.Spec{Text: "panic"})
	const panicked = "False Panic: stage Registered panicked: an answer without a body"
	w.Eventually(w.condition(cr, "Registered")).Should(Equal(panicked))
	began, before := time.Now(), calls.Load()
	for range 5 {
		w.pass(cr)
	}
	w.Expect(calls.Load()-before).To(BeNumerically("<=", 1+time.Since(began)/(400*time.Millisecond)), "calls in 15 passes")
	w.Expect(w.condition(cr, "Registered")()).To(Equal(panicked))
	w.change(cr, func(s *widget.Spec) { s.Text = "fine" })
	w.awaitReady(cr)
}

// TestARestartKnowsWhatWasObservedLast, also if the stage has not been complete since.
func TestARestartKnowsWhatWasObservedLast(t *testing.T) {
	w := newTestWorld(t)
	var seen atomic.Int64
	var broken atomic.Bool
	s := service{Name: owner, Owns: append([]client.Object{&widget.Rack{}}, owns...), Stages: []stage{{
		Condition: "Registered", Every: func(*widget.Widget) time.Duration { return 100 * time.Millisecond },
		Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			if broken.Load() {
				return nil, errors.New("no answer")
			}
			return engine.Observed{"seen": fmt.Sprint(seen.Load())}, nil
		},
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			return []engine.Child{configMap(cr.Name, in.Observed("Registered")["seen"]), &widget.Rack{ObjectMeta: metaOf("", cr.Name)}}, nil
		},
	}}}
	start(w, s)
	cr := w.widget("counts", widget.Spec{})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.play(rack, "False", "it is broken")
	w.Eventually(w.condition(cr, "Registered")).Should(HavePrefix("False"))
	seen.Store(7)
	w.Eventually(func() string { // of the record, which is written after the child
		w.must(w.get(cr))
		for _, record := range cr.Status.Completed {
			if record.Stage == "Registered" {
				return record.Observed["seen"]
			}
		}
		return ""
	}).Should(Equal("7"))
	w.operator.Stop()
	broken.Store(true)
	w.must(w.client.Delete(w.ctx, w.configMap(cr.Name)))
	start(w, s)
	w.Eventually(w.textOf(cr.Name)).ShouldNot(BeEmpty())
	w.Expect(w.textOf(cr.Name)()).To(Equal("7"))
}

// TestRepetitionsAreSpread: many objects call a server at the same time after a restart, and
// not again.
func TestRepetitionsAreSpread(t *testing.T) {
	g := NewWithT(t)
	const every = 10 * time.Second
	seen := map[time.Duration]bool{}
	for range 1000 {
		repeat := engine.DoRepeat(every)
		g.Expect(repeat).To(And(BeNumerically(">=", every), BeNumerically("<", every+every/10)))
		seen[repeat.Truncate(every/100)] = true
	}
	g.Expect(seen).To(HaveLen(10), "hundredths of the time")
	g.Expect(engine.DoRepeat(0)).To(BeZero())
}

func TestDoIsRepeated(t *testing.T) {
	w := newTestWorld(t)
	w.needed()
	var server outside
	start(w, server.service(100*time.Millisecond))
	cr := w.widget("every", widget.Spec{Text: "first", SecretName: "needed"})
	w.awaitReady(cr)
	w.Eventually(func() int { return len(server.called()) }).Should(BeNumerically(">", 3))
	w.Expect(w.operator.Requests.Of("patch", "widgets/status")).To(HaveLen(1), "equal results are not written again")

	server.breaks(errors.New("db.example:3306: cannot log in with p4ssw0rd"))
	w.Eventually(w.condition(cr, "Registered")).Should(Equal("False Error: db.example:3306: cannot log in with ***"))
	child := w.configMap(cr.Name)
	w.must(w.get(child))
	child.Data["text"] = "changed by another client"
	w.must(w.client.Update(w.ctx, child))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("account of first"), "a failed Do with former inputs does not stop the walk")
	w.operator.Stop()
	start(w, server.service(100*time.Millisecond))
	w.must(w.client.Delete(w.ctx, child))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("account of first"), "also after a restart")

	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "Registered")).Should(HavePrefix("False Error"))
	began, before := time.Now(), len(server.called())
	for range 5 {
		w.pass(cr)
	}
	w.Expect(len(server.called())-before).To(BeNumerically("<=", 1+time.Since(began)/(400*time.Millisecond)), "a failing Do is not called for every event")
	w.Expect(w.textOf(cr.Name)()).To(Equal("account of first"), "the walk stops after a failed Do with new inputs")
	server.breaks(nil)
	w.awaitReady(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal("account of second"))
}

func TestEventsNameChangedConditions(t *testing.T) {
	w := newTestWorld(t)
	var server outside
	everyStage := server.service(0)
	everyStage.Stages = append(everyStage.Stages, stage{Condition: "More", Needs: func(*widget.Widget) []engine.Need {
		return []engine.Need{engine.ConfigMap("more", "key")}
	}})
	start(w, everyStage)
	cr := w.widget("events", widget.Spec{Text: "first", SecretName: "needed"})
	waits := ContainSubstring("Registered is False (Waiting) Secret needed does not exist")
	w.Eventually(func() []string { return w.events(cr, "Waiting") }).Should(ConsistOf(waits))
	w.needed()
	// Ready has the same reason, but another condition has changed.
	w.Eventually(func() []string { return w.events(cr, "Waiting") }).Should(ConsistOf(waits, ContainSubstring("More is False (Waiting) ConfigMap more does not exist")))
	more := w.configMap("more")
	more.Data = map[string]string{"key": "x"}
	w.create(more)
	w.awaitReady(cr)
	w.Eventually(func() []string { return w.events(cr, "Ready") }).Should(ConsistOf(And(ContainSubstring("More is True"), ContainSubstring("Ready is True"))))
	w.pass(cr)
	w.Expect(w.events(cr, "Ready")).To(HaveLen(1))
}

// TestEqualEventsAreCounted: an object that is repeatedly recreated has few events.
func TestEqualEventsAreCounted(t *testing.T) {
	w := newTestWorld(t)
	var server outside
	start(w, server.service(0))
	w.needed()
	cr := w.widget("flaps", widget.Spec{Text: "first", SecretName: "needed"})
	w.awaitReady(cr)
	for range 2 {
		w.must(w.client.Delete(w.ctx, w.secret("needed")))
		w.Eventually(w.condition(cr, "Ready")).Should(ContainSubstring("Waiting"))
		w.needed()
		w.awaitReady(cr)
	}
	w.Eventually(func() []string { return w.events(cr, "Waiting") }).Should(ConsistOf(HavePrefix("2 times: ")))
}
