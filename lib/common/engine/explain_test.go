package engine_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// TestPodsThatCannotStartAreExplained with the text of "kubectl describe pod",
// and without a watch on pods.
func TestPodsThatCannotStartAreExplained(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	crashed := waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "starting\ncannot log in with p4ssw0rd\n"}
	killed := waiting("CrashLoopBackOff", "")
	killed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	running := func(since time.Duration, started bool) corev1.PodStatus {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-since))}}
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state, Started: new(started)}}}
	}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		said   string
	}{
		"probe":   {running(2*time.Minute, true), ": the readiness probe of container main fails: see kubectl describe pod"},
		"startup": {running(2*time.Minute, false), ": the startup probe of container main fails: see kubectl describe pod"},
		"image":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "Back-off pulling image \"x\"\nsecond line")}}, `: ImagePullBackOff: Back-off pulling image "x"`},
		"init":    {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{crashed}, ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}}, ": CrashLoopBackOff, ended with 1: starting / cannot log in with ***"},
		"crashes": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashed}}, ": CrashLoopBackOff, ended with 1: starting / cannot log in with ***"},
		"memory":  {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{killed}}, ": CrashLoopBackOff, OOMKilled, ended with 137"},
		"nowhere": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}}, ": Unschedulable: 0/1 nodes are available"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.needed()
			start(w, service{Name: owner, Owns: []client.Object{&appsv1.StatefulSet{}, &batchv1.Job{}}, Stages: []stage{{
				Condition: "WorkloadReady",
				Needs:     func(*widget.Widget) []engine.Need { return []engine.Need{engine.Secret("needed", "password")} },
				Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
					if cr.Spec.Text == "job" {
						return []engine.Child{engine.Once(job(cr, cr.Name))}, nil
					}
					return []engine.Child{statefulSet(cr)}, nil
				},
			}}})
			for _, text := range []string{"set", "job"} {
				cr := w.widget(name+"-"+text, widget.Spec{Text: text, Replicas: new(int32(1))})
				w.playPods(cr.Name, test.status)
				w.Eventually(w.condition(cr, "Ready")).Should(And(HavePrefix("False Progressing: "), ContainSubstring(": pod "+cr.Name), HaveSuffix(test.said)))
			}
			w.Expect(w.operator.Requests.Of("watch", "pods")).To(BeEmpty())
		})
	}
}

// playPods reports a status for the pods whose names have the prefix.
func (w *world) playPods(name string, status corev1.PodStatus) {
	w.t.Helper()
	w.Eventually(func() int {
		var pods corev1.PodList
		w.must(w.client.List(w.ctx, &pods, client.InNamespace(w.namespace)))
		played := 0
		for _, pod := range pods.Items {
			if len(pod.Name) > len(name) && pod.Name[:len(name)] == name {
				pod.Status = status
				pod.Status.Phase = corev1.PodPending
				if w.client.Status().Update(w.ctx, &pod) == nil {
					played++
				}
			}
		}
		return played
	}).Should(BeNumerically(">", 0))
}

// TestPodsOfCompleteChildrenAreNotRead: only incomplete children are examined.
func TestPodsOfCompleteChildrenAreNotRead(t *testing.T) {
	w := newTestWorld(t)
	enginetest.Kubelet{}.Start(w.t, w.namespace)
	start(w, service{Name: owner, Owns: []client.Object{&appsv1.StatefulSet{}}, Stages: []stage{
		build("WorkloadReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child { return []engine.Child{statefulSet(cr)} }),
	}})
	cr := w.widget("rests", widget.Spec{Replicas: new(int32(1))})
	w.awaitReady(cr)
	w.sees(&appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)})
	w.pass(cr)
	w.operator.Requests.Reset()
	w.pass(cr)
	w.Consistently(func() []enginetest.Request { return w.operator.Requests.All() }, "4s").Should(BeEmpty())
}

// TestDelayedDeletionsAreExplained: the message has the finalizer and the result of Explained,
// and a parent repeats the message of its child.
func TestDelayedDeletionsAreExplained(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{
		Name: owner, Owns: []client.Object{&corev1.ConfigMap{}, &widget.Rack{}},
		Stages: []stage{rackStage(), configMaps("ConfigReady")},
		Teardown: []stage{
			build("RackGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Absent(&widget.Rack{ObjectMeta: metaOf("", cr.Name)})}
			}),
			build("ConfigGone", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				return []engine.Child{engine.Explained(engine.Absent(engine.Unowned(configMap(cr.Name, ""))), func(_ context.Context, _ client.Reader, obj client.Object) (string, error) {
					return "somebody reads " + obj.GetName(), nil
				})}
			}),
		},
	})
	cr := w.widget("held", widget.Spec{})
	rack, config := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}, w.configMap(cr.Name)
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	for _, child := range []client.Object{rack, config} {
		w.must(w.get(child))
		controllerutil.AddFinalizer(child, "test.asterism.dev/held")
		w.must(w.client.Update(w.ctx, child))
	}
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Deleting: RackGone: Rack held is being deleted, waiting for finalizer test.asterism.dev/held"))
	w.play(rack, "False", "3 books lie on it")
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Deleting: RackGone: Rack held is being deleted: 3 books lie on it"))
	w.unhold(rack)
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False Deleting: ConfigGone: ConfigMap held is being deleted, waiting for finalizer test.asterism.dev/held: somebody reads held"))
	w.unhold(config)
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
}

// unhold removes the finalizers of an object.
func (w *world) unhold(obj client.Object) {
	w.t.Helper()
	w.must(w.client.Patch(w.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}
