package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// rackStage applies a Rack, whose status the test reports.
func rackStage() stage {
	return build("RackReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}, Spec: widget.Spec{Text: cr.Spec.Text}}}
	})
}

func TestDoneIsNotReady(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{rackStage(), configMaps("ConfigReady")}})
	cr := w.widget("done", widget.Spec{Text: "first"})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	config := w.configMap(cr.Name)
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("Unknown NotReached"))
	w.play(rack, "True", "")
	w.awaitReady(cr)

	w.play(rack, "False", "a shelf fell down")
	w.Eventually(w.condition(cr, "RackReady")).Should(Equal("False Waiting: Rack done: a shelf fell down"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"), "later conditions stay")
	w.must(w.client.Delete(w.ctx, config))
	w.Eventually(func() error { return w.get(config) }).Should(Succeed(), "the walk continues after a stage that is done but not ready")

	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("False Progressing"))
	w.pass(cr)
	w.must(w.get(config))
	w.Expect(config.Data).To(HaveKeyWithValue("text", "first"), "a new revision is not done")
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.must(w.get(config))
	w.Expect(config.Data).To(HaveKeyWithValue("text", "second"))
}

// TestAChildThatReportsAConflictIsNotReady, but is not foreign: later children and stages do
// not wait for it.
func TestAChildThatReportsAConflictIsNotReady(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: append([]client.Object{&widget.Rack{}}, owns...), Stages: []stage{
		build("RacksReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			racks := []engine.Child{&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}}
			if cr.Spec.Text == "two" {
				racks = append(racks, &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-two"}})
			}
			return racks
		}),
		build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child { return []engine.Child{configMap(cr.Name, "")} }),
	}})
	cr := w.widget("reports", widget.Spec{})
	one, two := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}, &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name+"-two")}
	w.Eventually(func() error { return w.get(one) }).Should(Succeed())
	w.playReason(one, "Ready", "False", engine.ReasonConflict, "the shelf is foreign")
	w.Eventually(w.condition(cr, "RacksReady")).Should(Equal("False Conflict: Rack reports: the shelf is foreign"))
	w.change(cr, func(s *widget.Spec) { s.Text = "two" })
	w.Eventually(func() error { return w.get(two) }).Should(Succeed(), "the next child is created")

	w.play(one, "True", "")
	w.play(two, "True", "")
	w.awaitReady(cr)
	w.playReason(one, "Ready", "False", engine.ReasonConflict, "the shelf is foreign")
	w.Eventually(w.condition(cr, "RacksReady")).Should(HavePrefix("False Conflict"))
	w.must(w.client.Delete(w.ctx, w.configMap(cr.Name)))
	w.Eventually(func() error { return w.get(w.configMap(cr.Name)) }).Should(Succeed(), "the walk continues")
}

// TestReportKnowsTheChildrenOfItsPass: a child may be complete in the pass that has created
// the child.
func TestReportKnowsTheChildrenOfItsPass(t *testing.T) {
	w := newTestWorld(t)
	listing := build("ServiceReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{applycorev1.Service(cr.Name, "").WithSpec(applycorev1.ServiceSpec().WithClusterIP(corev1.ClusterIPNone))}
	})
	listing.Needs = func(*widget.Widget) []engine.Need { return []engine.Need{engine.Children()} }
	seen := make(chan int, 100)
	start(w, service{Name: owner, Owns: []client.Object{&corev1.Service{}}, Stages: []stage{listing}, Report: func(_ *widget.Widget, in engine.Inputs) {
		seen <- len(engine.ChildrenOf[*corev1.Service](in))
	}})
	w.awaitReady(w.widget("knows", widget.Spec{Text: "first"}))
	w.Expect(<-seen).To(Equal(1))
}

// TestAPanicOfTheReportIsNotReady: the status would show the time before without a word.
func TestAPanicOfTheReportIsNotReady(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("ConfigReady")}, Report: func(cr *widget.Widget, _ engine.Inputs) {
		if cr.Spec.Text == "panic" {
			panic("no endpoint") //nolint:forbidigo // as a bug would
		}
	}})
	cr := w.widget("reports", widget.Spec{Text: "panic"})
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Panic: the report panicked: no endpoint"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"))
	w.change(cr, func(s *widget.Spec) { s.Text = "fine" })
	w.awaitReady(cr)
}

// TestAConflictHasPriorityInReady: only the conflict needs an action of a user.
func TestAConflictHasPriorityInReady(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: append([]client.Object{&widget.Rack{}}, owns...), Stages: []stage{
		build("AllReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}, configMap(cr.Name, "")}
		}),
	}})
	w.must(w.client.Create(w.ctx, w.configMap("told")))
	cr := w.widget("told", widget.Spec{})
	w.Eventually(w.condition(cr, "AllReady")).Should(HavePrefix("False Conflict: ConfigMap told exists"))
}

func TestWalkContinuesAfterAStageWithContinue(t *testing.T) {
	w := newTestWorld(t)
	rack := rackStage()
	rack.Continue = true
	after := configMaps("AfterRack")
	after.Needs = func(*widget.Widget) []engine.Need { return []engine.Need{engine.Done("RackReady")} }
	start(w, service{
		Name: owner, Stages: []stage{rack, configMaps("ConfigReady"), after},
		Available: &stage{Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.Done("ConfigReady")} }},
	})
	cr := w.widget("continue", widget.Spec{Text: "first"})
	w.Eventually(w.condition(cr, "AfterRack")).Should(Equal("False Waiting: stage RackReady is not done"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"))
	w.Expect(w.condition(cr, "Available")()).To(HavePrefix("True"))
	w.Expect(w.condition(cr, "Ready")()).To(HavePrefix("False Progressing: Rack continue"), "the first stage that is not ready")
	w.play(&widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}, "True", "")
	w.awaitReady(cr)
}

// TestReadyDoesNotDependOnAStageThatIsApart, and no other stage waits for it. Its failure is a
// warning.
func TestReadyDoesNotDependOnAStageThatIsApart(t *testing.T) {
	w := newTestWorld(t)
	apart := build("Swept", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name+"-apart", "")}
	})
	apart.Apart = true
	apart.Judge = func(cr *widget.Widget, _ engine.Inputs) (string, error) {
		if cr.Spec.Text == "dirty" {
			return "", engine.Stop("Dirty", "the broom broke")
		}
		return "clean", nil
	}
	start(w, service{Name: owner, Owns: owns, Stages: []stage{apart, configMaps("ConfigReady")}})
	cr := w.widget("apart", widget.Spec{Text: "dirty"})
	w.awaitReady(cr)
	w.Expect(w.condition(cr, "Swept")()).To(Equal("False Dirty: the broom broke"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"))
	w.Expect(w.condition(cr, "Stalled")()).NotTo(HavePrefix("True"))
	w.Eventually(func() []eventsv1.Event { return w.eventsAbout(cr) }).Should(ContainElement(And(
		HaveField("Type", corev1.EventTypeWarning), HaveField("Note", ContainSubstring("Swept is False (Dirty) the broom broke")))))
	w.change(cr, func(s *widget.Spec) { s.Text = "swept" })
	w.Eventually(w.condition(cr, "Swept")).Should(Equal("True Complete: clean"))
}

func TestNeedsOfOtherObjects(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{
		{Condition: "Met", Needs: func(cr *widget.Widget) []engine.Need {
			rack := &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
			return []engine.Need{
				engine.Condition(rack, "Ready"),
				engine.Existing(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}),
				engine.Labelled[*widget.Rack](map[string]string{"row": "one"}).Need,
				engine.AnyOf(engine.ConfigMap("one", "key"), engine.ConfigMap("other", "key")),
			}
		}},
		build("Listed", func(cr *widget.Widget, in engine.Inputs) []engine.Child {
			var names string
			for _, rack := range engine.Labelled[*widget.Rack](map[string]string{"row": "one"}).In(in) {
				names += rack.Name + " "
			}
			return []engine.Child{configMap(cr.Name+"-racks", names)}
		}),
	}})
	cr := w.widget("needs", widget.Spec{})
	met := w.condition(cr, "Met")
	w.Eventually(met).Should(Equal("False Waiting: Rack needs does not exist"))
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.create(rack)
	w.Eventually(met).Should(HavePrefix("False Waiting: Rack needs: its operator has not seen generation 1"))
	w.play(rack, "False", "no shelf")
	w.Eventually(met).Should(Equal("False Waiting: Rack needs: Ready is Waiting: no shelf"))
	w.play(rack, "True", "")
	w.Eventually(met).Should(Equal("False Waiting: Service needs does not exist"))
	w.create(&corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	w.Eventually(met).Should(Equal("False Waiting: ConfigMap one does not exist; ConfigMap other does not exist"))
	other := w.configMap("other")
	other.Data = map[string]string{"key": "x"}
	w.create(other)
	w.awaitReady(cr)
	for _, name := range []string{"b", "a"} {
		w.create(&widget.Rack{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"row": "one"}}})
	}
	w.Eventually(func() string { c := w.configMap(cr.Name + "-racks"); _ = w.get(c); return c.Data["text"] }).Should(Equal("a b "))
}

func TestReplacedIsDeletedFirst(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{build("Replaced", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{engine.Replaced(configMap(cr.Name, cr.Spec.Text).WithImmutable(true))}
	})}})
	cr := w.widget("replaced", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	child := w.configMap(cr.Name)
	w.must(w.get(child))
	uid := child.UID
	w.annotate(child, "note", "foreign")
	w.pass(cr)
	w.Expect(w.uid(child)).To(Equal(uid))
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.awaitReady(cr)
	w.must(w.get(child))
	w.Expect(child.UID).NotTo(Equal(uid))
	w.Expect(child.Data).To(HaveKeyWithValue("text", "second"))
}

func TestRefusedIsStalled(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{build("Refused", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name, cr.Spec.Text).WithImmutable(true)}
	})}})
	cr := w.widget("refused", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "Stalled")).Should(And(HavePrefix("True Invalid: the API server refuses ConfigMap refused"), ContainSubstring("immutable")))
	w.operator.Requests.Reset()
	w.change(cr, func(s *widget.Spec) { s.Text = "first" })
	w.awaitReady(cr)
	w.Expect(w.condition(cr, "Stalled")()).To(Equal("absent"))
}

// TestLingeringOutlivesItsReaders: the old Secret exists until every stage is ready with the
// new Secret.
func TestLingeringOutlivesItsReaders(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: []client.Object{&corev1.Secret{}, &widget.Rack{}}, Stages: []stage{
		build("SecretReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Lingering(secret(cr.Name + "-" + cr.Spec.Text).WithImmutable(true))}
		}),
		rackStage(),
	}})
	cr := w.widget("lingers", widget.Spec{Text: "first"})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("False Progressing"))
	w.pass(cr)
	w.Expect(w.gone(w.secret(cr.Name+"-first"))).To(BeFalse(), "a consumer may still use the Secret")
	w.operator.Stop()
	start(w, service{Name: owner, Owns: []client.Object{&corev1.Secret{}, &widget.Rack{}}, Stages: []stage{
		build("SecretReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Lingering(secret(cr.Name + "-" + cr.Spec.Text).WithImmutable(true))}
		}),
		rackStage(),
	}})
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.Eventually(func() bool { return w.gone(w.secret(cr.Name + "-first")) }).Should(BeTrue())
	w.Expect(w.gone(w.secret(cr.Name + "-second"))).To(BeFalse())
}

// TestForgetsDeletedObjects: the memory of an operator must not grow with every deleted
// object.
func TestForgetsDeletedObjects(t *testing.T) {
	w := newTestWorld(t)
	w.needed()
	enginetest.Kubelet{}.Start(w.t, w.namespace)
	var seam engine.Seam
	start(w, everything(registers), func(s *engine.Seam) { s.Remembered = &seam.Count })
	keeps := w.widget("keeps", widget.Spec{SecretName: "needed"})
	w.awaitReady(keeps)
	w.pass(keeps)
	before := w.settled(seam.Count)
	goes := w.widget("goes", widget.Spec{SecretName: "needed"})
	w.awaitReady(goes)
	w.Expect(seam.Count()).To(BeNumerically(">", before))
	w.must(w.client.Delete(w.ctx, goes))
	w.Eventually(func() bool { return w.gone(goes) }).Should(BeTrue())
	w.Eventually(func() int { w.pass(keeps); return seam.Count() }).Should(BeNumerically("<=", before))
}

// settled returns a count that stays: a write counts until the watch shows it.
func (w *world) settled(count func() int) int {
	last := -1
	w.EventuallyWithOffset(1, func() bool {
		before := last
		last = count()
		return last == before
	}).WithPolling(time.Second).Should(BeTrue(), "the count stays for a second")
	return last
}

// TestForgetsAnObjectThatIsRecreated while a pass over it runs: no pass sees that it is gone.
func TestForgetsAnObjectThatIsRecreated(t *testing.T) {
	w := newTestWorld(t)
	var seam engine.Seam
	busy, holds := make(chan struct{}), atomic.Bool{}
	start(w, service{Name: owner, Owns: []client.Object{&widget.Rack{}}, Stages: []stage{build("RackReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		if holds.CompareAndSwap(true, false) {
			busy <- struct{}{}
			<-busy
		}
		return []engine.Child{engine.Explained(&widget.Rack{ObjectMeta: metaOf("", cr.Name)}, func(context.Context, client.Reader, client.Object) (string, error) {
			return "it is empty", nil
		})}
	})}}, func(s *engine.Seam) { s.Remembered = &seam.Count })
	cr := w.widget("again", widget.Spec{})
	explained := HaveSuffix("it is empty")
	w.Eventually(w.condition(cr, "RackReady")).Should(explained)
	before := w.settled(seam.Count)
	holds.Store(true)
	w.annotate(cr, "changed", "now")
	<-busy
	w.must(w.client.Delete(w.ctx, cr))
	cr = w.widget("again", widget.Spec{})
	later := w.widget("later", widget.Spec{})
	w.Eventually(w.condition(later, "RackReady")).Should(explained, "the watch has shown the older object as well")
	busy <- struct{}{}
	w.must(w.client.Delete(w.ctx, later))
	w.Eventually(func() bool { return w.gone(later) }).Should(BeTrue())
	w.Eventually(w.condition(cr, "RackReady")).Should(explained)
	w.Eventually(seam.Count).Should(BeNumerically("<=", before))
}

// TestMemoryIsOfOneObject: the back-off of a deleted object, or its fights, delay no other object.
func TestMemoryIsOfOneObject(t *testing.T) {
	g := NewWithT(t)
	g.Expect(engine.SharesMemory("first", "first")).To(BeTrue())
	g.Expect(engine.SharesMemory("first", "second")).To(BeFalse(), "of an object that is recreated")
}

// TestARecreatedObjectHasNoFormerStatus: an object is deleted and recreated during a pass, which
// ends with the status of the deleted object.
func TestARecreatedObjectHasNoFormerStatus(t *testing.T) {
	w := newTestWorld(t)
	begins, ends, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "Held",
		Build: func(*widget.Widget, engine.Inputs) ([]engine.Child, error) {
			select {
			case begins <- struct{}{}:
				<-ends
			case <-free:
			}
			return nil, nil
		},
		Report: func(cr *widget.Widget, _ engine.Inputs) { cr.Status.Reported = string(cr.UID) },
	}}})
	cr := w.widget("recreated", widget.Spec{})
	<-begins
	w.must(w.client.Delete(w.ctx, cr))
	cr = w.widget("recreated", widget.Spec{})
	ends <- struct{}{}
	<-begins // the next pass, which has written nothing yet
	w.must(w.get(cr))
	close(free)
	ends <- struct{}{}
	w.Expect(cr.Status).To(BeZero(), "of the object that was deleted")
	w.awaitReady(cr)
	w.Expect(cr.Status.Reported).To(BeEquivalentTo(cr.UID))
}
