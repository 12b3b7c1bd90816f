package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract08Jobs(t *testing.T) {
	contract{check: contract08, mutants: map[string]mutant{
		"leaves the result on the pod": {
			seam:   func(s *engine.Seam) { s.Client = resultlessClient{s.Client} },
			caught: `outlives its pod`,
		},
		"does not wait for the pods of the old run": {
			seam:   func(s *engine.Seam) { s.Client = hastyClient{s.Client} },
			caught: `two runs at a time`,
		},
		"forgets the failure while the Job runs again": {
			seam:   func(s *engine.Seam) { s.Client = statusClient{s.Client, forgetFailure} },
			caught: `running again`,
		},
	}}.test(t)
}

func contract08(w *world) {
	w.needed()
	var script jobScript
	enginetest.Kubelet{Job: script.run}.Start(w.t, w.namespace)
	start(w, service{
		Name: owner,
		Stages: []stage{
			{
				Condition: "SchemaReady",
				Needs:     func(*widget.Widget) []engine.Need { return []engine.Need{engine.Secret("needed", "password")} },
				Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
					if cr.Annotations["wait"] == "true" {
						return nil, engine.Wait("the gate is closed")
					}
					sync := engine.Once(job(cr, cr.Name+"-sync"))
					if cr.Name == "whole" {
						sync = engine.Uninterrupted(sync)
					}
					return []engine.Child{sync}, nil
				},
				Report: func(cr *widget.Widget, in engine.Inputs) { cr.Status.Reported = in.Result(cr.Name + "-sync") },
			},
			configMaps("ConfigReady"),
		},
		Teardown: []stage{{
			Condition: "Cleared",
			Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
				return []engine.Child{engine.Once(job(cr, cr.Name+"-clear"))}, nil
			},
		}},
		Owns: []client.Object{&batchv1.Job{}, &corev1.ConfigMap{}},
	})
	w.retries(&script)
	w.retriesInATeardown(&script)
	w.keepsTheResult(&script)
	w.runsAgain(&script)
	w.runsToItsEnd(&script)
}

// retries checks that a failed Job runs again, and that the message has the failure meanwhile,
// without the password.
func (w *world) retries(script *jobScript) {
	w.t.Helper()
	fails := end{2, "cannot log in with p4ssw0rd"}
	script.say("retries", fails, end{code: -1})
	cr := w.widget("retries", widget.Spec{Text: "first"})
	const failed = "sync ended with 2: cannot log in with ***"
	w.Eventually(w.condition(cr, "SchemaReady")).Should(HavePrefix("False JobFailed"))
	w.Expect(w.gone(w.configMap(cr.Name))).To(BeTrue(), "the walk does not continue")
	w.Eventually(func() int { return script.runs("retries") }).Should(Equal(2))
	w.decides(w.condition(cr, "SchemaReady"), And(HavePrefix("False JobFailed: running again; "), ContainSubstring(failed)), Equal("False JobFailed: running"), "running again")
	w.pass(cr)
	w.Expect(w.condition(cr, "SchemaReady")()).To(And(HavePrefix("False JobFailed: running again; "), ContainSubstring(failed)), "running again")
	script.say("retries", fails, end{message: "uuid=42"})
	w.awaitReady(cr)
	w.Expect(cr.Status.Reported).To(Equal("uuid=42"))
	w.Expect(w.created("retries")).To(Equal(2), "Jobs created")
	w.Expect(w.jobs("retries")).To(HaveLen(1))
	for _, stored := range w.jobs("retries") {
		w.Expect(text(&stored)).NotTo(ContainSubstring("p4ssw0rd"))
	}
}

// retriesInATeardown checks that Ready keeps the failure of a teardown's Job while the Job runs
// again.
func (w *world) retriesInATeardown(script *jobScript) {
	w.t.Helper()
	script.say("cleared", end{})
	cr := w.widget("cleared", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	fails := end{1, "1 server is left"}
	script.say("cleared-clear", fails, end{code: -1})
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(func() int { return script.runs("cleared-clear") }).Should(Equal(2))
	w.Eventually(w.condition(cr, "Ready")).Should(And(HavePrefix("False JobFailed: Cleared: running again; "), ContainSubstring(fails.message)), "running again in a teardown")
	script.say("cleared-clear", fails, end{})
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
}

// keepsTheResult checks that the result outlives the pod, also after a restart.
func (w *world) keepsTheResult(script *jobScript) {
	w.t.Helper()
	script.say("result", end{message: "uuid=43"})
	cr := w.widget("result", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.Expect(cr.Status.Reported).To(Equal("uuid=43"))
	w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace), jobPods(cr.Name)))
	w.operator.Requests.Reset()
	w.pass(cr)
	w.must(w.client.Status().Patch(w.ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))))
	w.decides(func() string {
		if len(w.operator.Requests.Of("list", "pods")) > 0 {
			return "the engine looks for the pod"
		}
		w.must(w.get(cr))
		return cr.Status.Reported
	}, Equal("uuid=43"), Equal("the engine looks for the pod"), "the result outlives its pod")
	w.awaitReady(cr)
	w.Expect(w.operator.Requests.Of("list", "pods")).To(BeEmpty(), "the result outlives its pod")
	w.Expect(w.created("result")).To(Equal(0), "the result outlives its pod: Jobs created again")
}

// runsAgain checks that a changed Job runs again, but never two runs at the same time.
func (w *world) runsAgain(script *jobScript) {
	w.t.Helper()
	script.say("again", end{code: -1})
	cr := w.widget("again", widget.Spec{Text: "first"})
	w.Eventually(func() int { return script.runs("again") }).Should(Equal(1))
	w.hold("again", true)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(func() []enginetest.Request { return w.operator.Requests.Of("delete", "jobs") }).Should(ContainElement(HaveField("Name", HavePrefix("again"))))
	w.pass(cr)
	w.Expect(script.runs("again")).To(Equal(1), "two runs at a time")
	w.Expect(w.created("again")).To(Equal(1), "two runs at a time")
	w.Eventually(w.condition(cr, "SchemaReady")).Should(ContainSubstring("superseded"))
	w.hold("again", false)
	w.Eventually(func() int { return script.runs("again") }).Should(Equal(2))
	script.say("again", end{message: "done"})
	w.awaitReady(cr)
	w.Expect(w.jobs("again")).To(HaveLen(1))
	w.Expect(w.jobs("again")[0].Spec.Template.Spec.Containers[0].Args).To(ContainElement("second"))
}

// runsToItsEnd checks that a Job that must not be interrupted is not deleted while its pod runs,
// and that the changed Job runs afterwards.
func (w *world) runsToItsEnd(script *jobScript) {
	w.t.Helper()
	script.say("whole", end{code: -1})
	cr := w.widget("whole", widget.Spec{Text: "first"})
	w.Eventually(func() int { return script.runs("whole") }).Should(Equal(1))
	w.setPhase("whole", corev1.PodRunning)
	w.operator.Requests.Reset()
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.decides(w.condition(cr, "SchemaReady"), ContainSubstring("superseded, and is replaced when it ends"), ContainSubstring("being deleted"), "runs to its end")
	w.pass(cr)
	w.Expect(w.operator.Requests.Of("delete", "jobs")).NotTo(ContainElement(HaveField("Name", HavePrefix("whole"))), "runs to its end")
	script.say("whole", end{message: "done"})
	w.setPhase("whole", corev1.PodSucceeded)
	w.awaitReady(cr)
	w.Expect(w.created("whole")).To(Equal(1), "one more Job")
	w.Expect(w.jobs("whole")).To(HaveLen(1))
}

// setPhase sets the phase of the pods of a widget's Jobs.
func (w *world) setPhase(name string, phase corev1.PodPhase) {
	w.t.Helper()
	w.Eventually(func() error {
		var all corev1.PodList
		if err := w.client.List(w.ctx, &all, client.InNamespace(w.namespace), jobPods(name)); err != nil {
			return err
		}
		for _, pod := range all.Items {
			pod.Status.Phase = phase
			if err := w.client.Status().Update(w.ctx, &pod); err != nil {
				return err
			}
		}
		return nil
	}).Should(Succeed())
}

// hold delays the deletion of the pods of a widget's Jobs by a finalizer, like a slow node.
func (w *world) hold(name string, hold bool) {
	w.t.Helper()
	const finalizer = "test.asterism.dev/slow-node"
	w.Eventually(func() error {
		var all corev1.PodList
		if err := w.client.List(w.ctx, &all, client.InNamespace(w.namespace), jobPods(name)); err != nil {
			return err
		}
		for _, pod := range all.Items {
			var kept []string
			for _, f := range pod.Finalizers {
				if f != finalizer {
					kept = append(kept, f)
				}
			}
			if hold {
				kept = append(kept, finalizer)
			}
			pod.Finalizers = kept
			if err := w.client.Update(w.ctx, &pod); err != nil {
				return err
			}
		}
		return nil
	}).Should(Succeed())
}

// jobPods selects the pods of a widget's Jobs, and no others.
func jobPods(name string) client.MatchingLabels {
	return client.MatchingLabels{
		"app.kubernetes.io/name": owner + "-job", "app.kubernetes.io/component": "widget-job", "app.kubernetes.io/instance": name + "-sync",
	}
}

func (w *world) jobs(name string) []batchv1.Job {
	w.t.Helper()
	var all batchv1.JobList
	w.must(w.client.List(w.ctx, &all, client.InNamespace(w.namespace), client.MatchingLabels{"app.kubernetes.io/instance": name}))
	return all.Items
}

// created counts the Jobs of a widget that the operator has created.
func (w *world) created(name string) int {
	var count int
	for _, request := range w.operator.Requests.Of("apply", "jobs") {
		if request.Status == 201 && strings.HasPrefix(request.Name, name+"-") {
			count++
		}
	}
	return count
}

// end is the end of a run; with a negative code, the run does not end.
type end struct {
	code    int32
	message string
}

// jobScript has the ends of the runs of each widget's Job, in order; the last end is repeated.
type jobScript struct {
	mu    sync.Mutex
	ends  map[string][]end
	begun map[string][]types.UID
}

func (s *jobScript) say(name string, ends ...end) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends, s.begun = map[string][]end{}, map[string][]types.UID{}
	}
	s.ends[name] = ends
}

func (s *jobScript) run(pod *corev1.Pod) (int32, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimSuffix(pod.Labels["app.kubernetes.io/instance"], "-sync")
	if !slices.Contains(s.begun[name], pod.UID) {
		s.begun[name] = append(s.begun[name], pod.UID)
	}
	run := min(slices.Index(s.begun[name], pod.UID), len(s.ends[name])-1)
	return s.ends[name][run].code, s.ends[name][run].message
}

// runs counts the pods that have begun.
func (s *jobScript) runs(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.begun[name])
}

func TestRetriesOfJobsDouble(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	for failedAfter, wait := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 3 * time.Second: 5 * time.Second, 20 * time.Second: 20 * time.Second,
		time.Minute: time.Minute, time.Hour: 5 * time.Minute,
	} {
		g.Expect(engine.JobRetryWait(start, start.Add(failedAfter))).To(Equal(wait), fmt.Sprint(failedAfter))
	}
}

// TestTheFirstRetryOfAJobIsSoon, although its stage has not been ready for an hour.
func TestTheFirstRetryOfAJobIsSoon(t *testing.T) {
	w := newTestWorld(t)
	var script jobScript
	enginetest.Kubelet{Job: script.run}.Start(w.t, w.namespace)
	script.say("late", end{1, "no"}, end{code: -1})
	cr := w.widget("late", widget.Spec{Text: "first"})
	cr.Status.Conditions = []metav1.Condition{{
		Type: "SchemaReady", Status: metav1.ConditionFalse, Reason: engine.ReasonWaiting,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	w.must(w.client.Status().Update(w.ctx, cr))
	start(w, service{Name: owner, Owns: []client.Object{&batchv1.Job{}}, Stages: []stage{
		build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Once(job(cr, cr.Name+"-sync"))}
		}),
	}})
	w.Eventually(w.condition(cr, "SchemaReady")).Should(HavePrefix("False JobFailed"))
	script.say("late", end{1, "no"}, end{message: "done"})
	w.awaitReady(cr)
	w.Expect(script.runs("late")).To(Equal(2))
}

// resultlessClient does not store the result.
type resultlessClient struct{ client.Client }

func (c resultlessClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if _, ok := bodyOf(obj).GetAnnotations()["asterism.dev/result"]; ok {
		return nil
	}
	return c.Client.Apply(ctx, obj, opts...)
}

// hastyClient deletes without waiting for dependents.
type hastyClient struct{ client.Client }

func (c hastyClient) Delete(ctx context.Context, obj client.Object, _ ...client.DeleteOption) error {
	return c.Client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

func forgetFailure(ctx context.Context, next client.SubResourceWriter, cr *widget.Widget, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	for i, condition := range cr.Status.Conditions {
		if strings.HasPrefix(condition.Message, "running again") {
			cr.Status.Conditions[i].Message = "running"
		}
	}
	return next.Patch(ctx, cr, patch, opts...)
}
