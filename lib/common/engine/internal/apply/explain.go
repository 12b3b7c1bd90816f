package apply

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// A child that is not complete, or does not go away, is looked into after
// explainAfter, and then again and again: every explainSoon at the latest, and
// after explainLong every explainRarely.
const (
	explainAfter  = 5 * time.Second
	explainSoon   = 10 * time.Second
	explainLong   = 10 * time.Minute
	explainRarely = time.Minute
)

// Explanations remembers what was found to keep objects from being complete.
type Explanations struct {
	mu    sync.Mutex
	known map[types.UID]map[observe.Key]explanation // by owner
}

type explanation struct {
	since, asked time.Time
	text         string
}

// NewExplanations of a controller.
func NewExplanations() *Explanations {
	return &Explanations{known: map[types.UID]map[observe.Key]explanation{}}
}

func (e *Explanations) forget(owner types.UID, key observe.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known[owner], key)
}

// Forget what was found for the children of an owner that is gone.
func (e *Explanations) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, owner)
}

// Remembered counts what is remembered, for tests of what is forgotten.
func (e *Explanations) Remembered() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	count := 0
	for _, known := range e.known {
		count += len(known)
	}
	return count
}

// of returns what is known of a child, and after how long it is to be looked into
// again.
func (e *Explanations) of(owner types.UID, key observe.Key) (known explanation, due time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.known[owner][key]
	if !ok {
		known.since = time.Now()
		e.set(owner, key, known)
	}
	if known.asked.IsZero() {
		return known, explainAfter - time.Since(known.since)
	}
	interval := min(max(time.Since(known.since)/2, explainAfter), explainSoon)
	if time.Since(known.since) > explainLong {
		interval = explainRarely
	}
	return known, interval - time.Since(known.asked)
}

func (e *Explanations) found(owner types.UID, key observe.Key, known explanation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(owner, key, known)
}

func (e *Explanations) set(owner types.UID, key observe.Key, known explanation) {
	if e.known[owner] == nil {
		e.known[owner] = map[observe.Key]explanation{}
	}
	e.known[owner][key] = known
}

// explained adds the cause to the outcome of a child that is not complete. The
// child's own Explain finds the cause, or else its pods tell it.
func (c *Children) explained(ctx context.Context, key observe.Key, obj client.Object, explain Explain, incomplete error) error {
	owner := c.Owner.GetUID()
	if incomplete == nil {
		c.Explanations.forget(owner, key)
		return nil
	}
	if explain == nil && podSelector(obj) == nil {
		return incomplete
	}
	known, due := c.Explanations.of(owner, key)
	if due <= 0 {
		known.text, known.asked = c.ask(ctx, explain, obj), time.Now()
		c.Explanations.found(owner, key, known)
		due = explainAfter
	}
	outcome := *OutcomeOf(incomplete)
	if known.text != "" {
		outcome.Message += ": " + known.text
	}
	if outcome.After == 0 || due < outcome.After {
		outcome.After = due
	}
	return &outcome
}

// ask what keeps a child; a failure to find out is said in its place.
func (c *Children) ask(ctx context.Context, explain Explain, obj client.Object) string {
	if explain == nil {
		explain = c.podTrouble
	}
	ctx, cancel := context.WithTimeout(ctx, c.View.ReadTimeout)
	defer cancel()
	text, err := explain(ctx, c.View.API, obj)
	if err != nil {
		return err.Error()
	}
	return text
}

// podSelector of a workload or Job, nil for another object.
func podSelector(obj client.Object) *metav1.LabelSelector {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return obj.Spec.Selector
	case *appsv1.Deployment:
		return obj.Spec.Selector
	case *appsv1.DaemonSet:
		return obj.Spec.Selector
	case *batchv1.Job:
		return &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.JobNameLabel: obj.Name}}
	}
	return nil
}

// pods of a workload or Job. They are never watched.
func (c *Children) pods(ctx context.Context, obj client.Object) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(podSelector(obj))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.View.ReadTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := c.View.API.List(ctx, &pods, client.InNamespace(obj.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", obj.GetName(), err)
	}
	return pods.Items, nil
}

// podTrouble says of the first pod that cannot start what "kubectl describe pod"
// would say.
func (c *Children) podTrouble(ctx context.Context, _ client.Reader, obj client.Object) (string, error) {
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return condition.Reason + ": " + condition.Message, nil
			}
		}
	}
	pods, err := c.pods(ctx, obj)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if trouble := troubleOf(&pods[i], c.Mask); trouble != "" && pods[i].DeletionTimestamp == nil {
			return "pod " + pods[i].Name + ": " + trouble, nil
		}
	}
	return "", nil
}

func troubleOf(pod *corev1.Pod, mask func(string) string) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range statuses {
			if trouble := containerTrouble(container, mask); trouble != "" {
				return trouble
			}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
	}
	return ""
}

// containerTrouble is why a container waits, or how it ended last.
func containerTrouble(container corev1.ContainerStatus, mask func(string) string) string {
	ended := container.LastTerminationState.Terminated
	if container.State.Terminated != nil {
		ended = container.State.Terminated
	}
	var said []string
	if waits := container.State.Waiting; waits != nil && waits.Reason != "PodInitializing" && waits.Reason != "ContainerCreating" {
		said = append(said, waits.Reason)
		if ended == nil && waits.Message != "" {
			said = append(said, ": "+firstLine(mask(waits.Message)))
		}
	}
	if ended != nil && ended.ExitCode != 0 && !container.Ready {
		if ended.Reason != "" && ended.Reason != "Error" {
			said = append(said, ", "+ended.Reason)
		}
		said = append(said, fmt.Sprintf(", ended with %d", ended.ExitCode))
		if words := lastWords(shorten(mask(uncut(ended.Message)))); words != "" {
			said = append(said, ": "+words)
		}
	}
	return strings.TrimPrefix(strings.Join(said, ""), ", ")
}
