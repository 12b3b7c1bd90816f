package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// series returns the series of a metric with some values of labels, as text: for a histogram, the
// number of observations.
func series(metric string, values ...string) []string {
	return seriesOf(metrics.Registry, metric, values...)
}

func seriesOf(registry prometheus.Gatherer, metric string, values ...string) (found []string) {
	families, err := registry.Gather()
	if err != nil {
		return []string{err.Error()}
	}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, one := range family.GetMetric() {
			text, all := "", []string{}
			for _, label := range one.GetLabel() {
				text += label.GetName() + "=" + label.GetValue() + " "
				all = append(all, label.GetValue())
			}
			if slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(all, value) }) {
				continue
			}
			number := one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
			found = append(found, fmt.Sprint(text, number))
		}
	}
	return found
}

// newMeasuredWorld is not parallel to other tests, whose engines have the same kind.
func newMeasuredWorld(t *testing.T) *world {
	t.Helper()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	return newWorld(t, t, mutant{})
}

func TestPassesAreMeasured(t *testing.T) {
	w := newMeasuredWorld(t)
	const secret = "s3cret-of-a-server"
	var script jobScript
	script.say("measured", end{1, "odd"}, end{0, "done"})
	script.say("measured-again", end{})
	enginetest.Kubelet{Job: script.run}.Start(w.t, w.namespace)
	start(w, service{
		Name: owner, Owns: owns, Available: &stage{Needs: func(*widget.Widget) []engine.Need { return nil }},
		Stages: []stage{
			build("MeasuredJob", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Once(job(cr, cr.Name+"-sync"))}
			}),
			{Condition: "MeasuredDo", Shown: true, Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
				if cr.Spec.Text == "broken" {
					return nil, engine.Fail("MeasuredReason", errors.New(secret))
				}
				return nil, nil
			}},
		},
	})
	cr := w.widget("measured", widget.Spec{})
	w.awaitReady(cr)
	state := func(condition, status string) string {
		return fmt.Sprintf("condition=%s kind=Widget name=measured namespace=%s status=%s 1", condition, w.namespace, status)
	}
	w.Expect(series("asterism_pass_duration_seconds", "Widget")).To(HaveLen(1))
	w.Expect(series("asterism_do_duration_seconds", "MeasuredDo")).To(Equal([]string{"condition=MeasuredDo kind=Widget 1"}))
	w.Expect(series("asterism_jobs_total", "MeasuredJob")).To(Equal([]string{
		"condition=MeasuredJob kind=Widget result=failed 1", "condition=MeasuredJob kind=Widget result=succeeded 1",
	}))
	w.Expect(series("asterism_job_duration_seconds", "MeasuredJob")).To(Equal([]string{"condition=MeasuredJob kind=Widget 2"}))
	w.Expect(series("asterism_condition")).To(ConsistOf(state("Ready", "True"), state("Available", "True"), state("MeasuredDo", "True")), "no other stage is Shown")
	w.Expect(series("asterism_pass_failures_total", "MeasuredReason")).To(BeEmpty())

	w.change(cr, func(s *widget.Spec) { s.Text = "broken" })
	w.Eventually(func() []string { return series("asterism_condition") }).Should(ConsistOf(state("Ready", "False"), state("Available", "True"), state("MeasuredDo", "False")))
	w.Eventually(func() []string { return series("asterism_pass_failures_total", "MeasuredReason") }).Should(HaveLen(1))
	families, err := metrics.Registry.Gather()
	w.must(err)
	w.Expect(fmt.Sprint(families)).To(And(ContainSubstring("MeasuredReason"), Not(ContainSubstring(secret))))
	problems, err := promlint.NewWithMetricFamilies(slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return !strings.HasPrefix(f.GetName(), "asterism_")
	})).Lint()
	w.must(err)
	w.Expect(problems).To(BeEmpty())

	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(func() []string { return series("asterism_condition") }).Should(BeEmpty(), "the object is gone")
	w.Expect(series("asterism_condition_left_out_objects")).To(Equal([]string{"kind=Widget 0"}))

	w.awaitReady(w.widget("measured-again", widget.Spec{}))
	w.Expect(series("asterism_condition")).To(HaveLen(3))
	w.operator.Stop()
	start(w, service{Name: owner, Owns: owns}, func(s *engine.Seam) { s.Cached = emptyReader{s.Cached} })
	w.Expect(series("asterism_condition")).To(BeEmpty(), "a manager takes its objects along")
}

// emptyReader finds no widgets.
type emptyReader struct{ client.Reader }

func (r emptyReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*widget.Widget); ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// TestObjectsThatWaitForServersAreMeasured: of five workers, four call servers of a namespace.
func TestObjectsThatWaitForServersAreMeasured(t *testing.T) {
	w := newMeasuredWorld(t)
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Registered", Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			<-answer // also after its deadline, which comes early on a slow machine
			return nil, nil
		},
	}}}, func(s *engine.Seam) { s.Workers = 5 })
	var crs []engine.Object
	for _, name := range []string{"first", "second", "third", "fourth", "fifth", "sixth"} {
		crs = append(crs, w.widget(name, widget.Spec{}))
	}
	waiting := func() []string { return series("asterism_do_waiting", "Widget") }
	w.Eventually(waiting).Should(Equal([]string{"kind=Widget 2"}))
	release()
	w.awaitReady(crs...)
	w.Eventually(waiting).Should(Equal([]string{"kind=Widget 0"}))
}

// TestOnlyObjectsThatWaitAreCounted: neither a deleted object waits, nor one of a manager that ends.
func TestOnlyObjectsThatWaitAreCounted(t *testing.T) {
	g := NewWithT(t)
	queue := prometheus.NewGauge(prometheus.GaugeOpts{Name: "queue"})
	waiting := func() float64 {
		var metric dto.Metric
		g.Expect(queue.Write(&metric)).To(Succeed())
		return metric.GetGauge().GetValue()
	}
	s := engine.NewSlots(4, queue)
	for _, name := range []string{"a", "b", "c", "d"} {
		g.Expect(s.Take(name)).To(BeTrue())
	}
	g.Expect([]bool{s.Take("gone"), s.Take("next"), s.Take("last"), s.Take("last")}).To(HaveEach(false))
	g.Expect(waiting()).To(BeEquivalentTo(3))
	s.Forget("gone")
	s.Forget("a")
	g.Expect(waiting()).To(BeEquivalentTo(2))
	g.Expect(s.Release()).To(HaveExactElements(HaveField("Name", "next")))
	g.Expect(waiting()).To(BeEquivalentTo(1))
	s.End()
	g.Expect(waiting()).To(BeZero())
	g.Expect(s.Take("e")).To(BeTrue(), "a slot is free")
	g.Expect(s.Take("late")).To(BeFalse())
	g.Expect(waiting()).To(BeZero(), "nothing waits for a manager that ends")
}

// TestAnObjectKeepsItsTurn, if another one takes the slot first.
func TestAnObjectKeepsItsTurn(t *testing.T) {
	g := NewWithT(t)
	s := engine.NewSlots(4, prometheus.NewGauge(prometheus.GaugeOpts{Name: "queue"}))
	for _, name := range []string{"a", "b", "c", "d"} {
		g.Expect(s.Take(name)).To(BeTrue())
	}
	g.Expect([]bool{s.Take("first"), s.Take("second")}).To(HaveEach(false))
	g.Expect(s.Release()).To(HaveExactElements(HaveField("Name", "first")))
	g.Expect(s.Take("quick")).To(BeTrue())
	g.Expect(s.Take("first")).To(BeFalse())
	g.Expect(s.Release()).To(HaveExactElements(HaveField("Name", "first")))
	g.Expect(s.Take("first")).To(BeTrue())
	g.Expect(s.Take("first")).To(BeFalse(), "the next turn is that of the others")
	g.Expect(s.Release()).To(HaveExactElements(HaveField("Name", "second")))
}

func TestManyObjectsAreLeftOut(t *testing.T) {
	g := NewWithT(t)
	m := engine.NewObjectMetrics(2)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	shown := func(metric string) (found []string) { return seriesOf(registry, metric) }
	for _, name := range []string{"a", "b", "c", "d"} {
		m.Set("Widget", name, metav1.Condition{Type: "Ready", Status: "True"})
	}
	before := shown("asterism_condition")
	g.Expect(before).To(HaveLen(2))
	g.Expect(shown("asterism_certificate_expiry_timestamp_seconds")).To(HaveLen(2))
	g.Expect(shown("asterism_condition_left_out_objects")).To(Equal([]string{"kind=Widget 2"}))
	m.Set("Rack", "a", metav1.Condition{Type: "Ready", Status: "True"})
	g.Expect(shown("asterism_condition")).To(Equal(before), "the bound is that of all kinds, and what is shown stays")
	g.Expect(shown("asterism_condition_left_out_objects")).To(Equal([]string{"kind=Rack 1", "kind=Widget 2"}))
	for _, name := range []string{"a", "b", "c", "d"} {
		m.Forget("Widget", name)
	}
	g.Expect(shown("asterism_condition")).To(Equal([]string{"condition=Ready kind=Rack name=a namespace=n status=True 1"}))
	g.Expect(shown("asterism_condition_left_out_objects")).To(Equal([]string{"kind=Rack 0", "kind=Widget 0"}))
}

// TestCertificatesOfUsersAreMeasured: those that the last pass has read.
func TestCertificatesOfUsersAreMeasured(t *testing.T) {
	w := newMeasuredWorld(t)
	now := time.Now()
	inDays := func(days int) time.Time { return now.AddDate(0, 0, days) }
	old, next := certificatetest.NewAuthorityUntil(t, inDays(5)), certificatetest.NewAuthorityUntil(t, inDays(300))
	server, key := next.Sign(t, inDays(20), "server")
	renewed, _ := next.Sign(t, inDays(90), "server")
	start(w, service{Name: owner, Owns: owns, Stages: []stage{
		{Condition: "Open", Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.ConfigMap("gate")} }},
		build("Copied", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name, string(old.PEM))}
		}),
		{Condition: "Read", Needs: func(cr *widget.Widget) []engine.Need {
			needs := []engine.Need{engine.Secret("same"), engine.ConfigMap("same"), engine.Secret("password"), engine.Secret("junk"), engine.ConfigMap(cr.Name)}
			if cr.Spec.Text == "less" {
				needs = needs[1:]
			}
			return needs
		}},
	}})
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		s := w.secret(name)
		s.Data = data
		w.create(s)
		return s
	}
	tls := secret("same", map[string][]byte{"tls.crt": slices.Concat(server, old.PEM), "tls.key": key})
	secret("password", map[string][]byte{"password": []byte("s3cret-of-a-user")})
	secret("junk", map[string][]byte{"ca.crt": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")})
	w.create(w.configMap("gate"))
	bundle := w.configMap("same")
	bundle.Data = map[string]string{"ca.crt": string(next.PEM) + string(old.PEM)}
	w.create(bundle)
	cr := w.widget("reader", widget.Spec{})
	w.awaitReady(cr)
	expires := func(source string, at time.Time) string {
		return fmt.Sprintf("kind=Widget name=reader namespace=%s source=%s %v", w.namespace, source, float64(at.Unix()))
	}
	shown := func() []string { return series("asterism_certificate_expiry_timestamp_seconds") }
	w.Expect(shown()).To(ConsistOf(expires("secret/same", inDays(20)), expires("configmap/same", inDays(300))))

	tls.Data["tls.crt"] = renewed
	w.must(w.client.Update(w.ctx, tls))
	w.Eventually(shown).Should(ConsistOf(expires("secret/same", inDays(90)), expires("configmap/same", inDays(300))))

	w.must(w.client.Delete(w.ctx, w.configMap("gate")))
	w.Eventually(w.condition(cr, "Read")).Should(HavePrefix("Unknown"))
	w.Consistently(shown).WithTimeout(time.Second).Should(HaveLen(2), "a walk that ends early reads no certificate")
	w.create(w.configMap("gate"))
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "less" })
	w.Eventually(shown).Should(ConsistOf(expires("configmap/same", inDays(300))), "nobody reads the Secret")
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(shown).Should(BeEmpty(), "the object is gone")
}

// TestCertificatesOfAnObjectAreBounded: those that expire first are shown.
func TestCertificatesOfAnObjectAreBounded(t *testing.T) {
	g := NewWithT(t)
	m := engine.NewObjectMetrics(2)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	shown := func() []string { return seriesOf(registry, "asterism_certificate_expiry_timestamp_seconds") }
	many := map[string]time.Time{}
	for i := range 30 {
		many[fmt.Sprintf("secret/%d", i)] = time.Unix(int64(100-i), 0)
	}
	m.SetExpiries("Widget", "a", many, true)
	g.Expect(shown()).To(And(HaveLen(16), HaveEach(MatchRegexp(`source=secret/(1[4-9]|2\d) `))))
	m.SetExpiries("Widget", "a", map[string]time.Time{"secret/29": time.Unix(500, 0), "secret/new": time.Unix(1, 0)}, false)
	g.Expect(shown()).To(And(HaveLen(16), ContainElement(HaveSuffix("source=secret/new 1")), ContainElement(HaveSuffix("source=secret/15 85"))))
	m.SetExpiries("Widget", "a", map[string]time.Time{"secret/new": time.Unix(1, 0)}, true)
	g.Expect(shown()).To(Equal([]string{"kind=Widget name=a namespace=n source=secret/new 1"}))
}

// TestHiddenMessagesAreCounted: with a Secret of too many values, no message is shown.
func TestHiddenMessagesAreCounted(t *testing.T) {
	w := newMeasuredWorld(t)
	hidden := func() []string { return series("asterism_dropped_total", "hidden_message") }
	before := hidden()
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Read", Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.Secret("many")} },
		Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
			return nil, engine.Wait("a value of %s", cr.Name)
		},
	}}})
	many := w.secret("many")
	many.Data = map[string][]byte{"password-0": []byte("s3cret-0")}
	w.create(many)
	cr := w.widget("hides", widget.Spec{})
	w.Eventually(w.condition(cr, "Read")).Should(HaveSuffix("a value of hides"))
	w.Expect(hidden()).To(Equal(before), "the bound is not reached")
	for i := range 300 {
		many.Data[fmt.Sprintf("password-%d", i)] = fmt.Appendf(nil, "s3cret-%d", i)
	}
	w.must(w.client.Update(w.ctx, many))
	w.Eventually(w.condition(cr, "Read")).Should(ContainSubstring("hidden: Secret many has more than"))
	w.Expect(hidden()).NotTo(Equal(before))
}

func TestEffectsOfBoundsAreCounted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(series("asterism_dropped_total")).To(HaveLen(6), "every bound is there before its first effect")
	before := series("asterism_dropped_total", "event_note")
	engine.Dropped(engine.BoundEventNote)
	g.Expect(series("asterism_dropped_total", "event_note")).NotTo(Equal(before))
}
