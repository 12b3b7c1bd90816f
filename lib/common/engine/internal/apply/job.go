package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

const (
	// maxMessage bounds what of a termination message is stored, in bytes.
	maxMessage = 2048
	// kubeletKeeps is how much of a container's output becomes its message; of a
	// file it is more.
	kubeletKeeps = 2048
)

// ensureOnce runs the Job if no Job of this content has been complete.
func (c *Children) ensureOnce(ctx context.Context, stage Stage, d desired) (Result, error) {
	superseded, err := c.deleteSuperseded(ctx, d)
	if err != nil {
		return Result{}, err
	}
	if superseded != "" {
		return Result{}, progressing("Job %s is superseded and being deleted", superseded)
	}
	current, err := c.View.Get(ctx, d.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		if current, err = c.create(ctx, d); err != nil {
			return Result{}, err
		}
	}
	job, ok := current.(*batchv1.Job)
	if !ok {
		return Result{}, fmt.Errorf("%s is a %T", d.key, current)
	}
	if !c.IsOurs(job) {
		return Result{}, Foreign(d.key, job)
	}
	ended, failed := jobEnd(job)
	switch {
	case ended == nil || job.DeletionTimestamp != nil:
		return Result{}, c.explained(ctx, d.key, job, d.Explain, running(stage, d.key))
	case failed:
		return Result{}, c.retry(ctx, stage, d.key, job)
	}
	return c.collect(ctx, d, job)
}

// collect the result of a complete Job.
func (c *Children) collect(ctx context.Context, d desired, job *batchv1.Job) (Result, error) {
	message, known, err := c.result(ctx, d.key, job)
	if err != nil {
		return Result{}, err
	}
	if !known {
		if err := c.delete(ctx, d.key, job); err != nil {
			return Result{}, err
		}
		return Result{}, progressing("%s is complete, but its result was lost with its pod: running it again", d.key)
	}
	c.Explanations.forget(c.Owner.GetUID(), d.key)
	return Result{Object: job, Run: d.run, Message: message}, nil
}

// deleteSuperseded deletes runs of other content; the new run waits until they
// and their pods are gone, so that two never overlap.
func (c *Children) deleteSuperseded(ctx context.Context, d desired) (string, error) {
	jobs, err := c.View.Children(ctx, d.key.Kind, c.Owner.GetUID())
	if err != nil {
		return "", err
	}
	for _, job := range jobs {
		if job.GetLabels()[labelRunOf] != d.run || job.GetName() == d.key.Name || !c.IsOurs(job) {
			continue
		}
		key := observe.KeyOf(d.key.Kind, job)
		current, err := c.View.Get(ctx, key) // which may be newer
		if err != nil {
			return "", err
		}
		if current != nil && c.IsOurs(current) {
			return key.Name, c.delete(ctx, key, current)
		}
	}
	return "", nil
}

// running keeps the last failure in sight while the next run goes on.
func running(stage Stage, key observe.Key) *Outcome {
	if stage.Last != nil && stage.Last.Reason == ReasonJobFailed {
		const again = "running again; "
		return &Outcome{Reason: ReasonJobFailed, Message: again + strings.TrimPrefix(stage.Last.Message, again)}
	}
	return progressing("%s is running", key)
}

// retry waits as long as the stage has been failing before it runs the Job
// again, which needs no counter and survives a restart of the operator.
func (c *Children) retry(ctx context.Context, stage Stage, key observe.Key, job *batchv1.Job) error {
	message, known, err := c.result(ctx, key, job)
	if err != nil {
		return err
	}
	end, _ := jobEnd(job)
	if !known {
		message += end.Message
	}
	failed := end.LastTransitionTime.Time
	wait := c.JobRetryMin
	if stage.Last != nil && stage.Last.Status == metav1.ConditionFalse {
		wait = c.RetryWait(stage.Last.LastTransitionTime.Time, failed)
	}
	outcome := &Outcome{Reason: ReasonJobFailed, Message: fmt.Sprintf("%s failed: %s", key, message)}
	if outcome.After = time.Until(failed.Add(wait)); outcome.After > 0 {
		return outcome
	}
	outcome.After, outcome.Message = 0, "running again; "+outcome.Message
	if err := c.delete(ctx, key, job); err != nil {
		return err
	}
	return outcome
}

// RetryWait is how long a Job that failed is left alone whose stage has been
// failing since.
func (c *Controller) RetryWait(since, failed time.Time) time.Duration {
	return min(max(failed.Sub(since), c.JobRetryMin), c.JobRetryMax)
}

// jobEnd returns the condition that says that a Job has ended, nil before.
func jobEnd(job *batchv1.Job) (end *batchv1.JobCondition, failed bool) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return &condition, false
		case batchv1.JobFailed:
			return &condition, true
		}
	}
	return nil, false
}

// result returns the Job's termination message. It is copied from the pod onto
// the Job at once, so that losing the pod loses nothing; known is false if the
// pod was lost before.
func (c *Children) result(ctx context.Context, key observe.Key, job *batchv1.Job) (message string, known bool, err error) {
	if stored, ok := job.Annotations[annotationResult]; ok {
		return stored, true, nil
	}
	pods, err := c.pods(ctx, job)
	if err != nil {
		return "", false, err
	}
	message, known = terminationMessage(pods, c.Mask)
	if !known {
		return "its pod is gone, and with it the message; ", false, nil
	}
	note := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": key.Kind.GroupVersion().String(), "kind": key.Kind.Kind,
		"metadata": map[string]any{
			"name": job.Name, "namespace": job.Namespace, "uid": string(job.UID),
			"annotations": map[string]any{annotationResult: message},
		},
	}}
	err = c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(note), client.FieldOwner(c.Name+"-result"), client.ForceOwnership)
	if err != nil {
		return "", false, fmt.Errorf("storing the result of %s: %w", key, err)
	}
	c.View.Reached(key, note.GetResourceVersion())
	return message, true, nil
}

// terminationMessage returns the message of the container that decided how the
// Job ended: the first that failed, or else the last one. It is masked before it
// is cut anywhere: half a secret would not be known.
func terminationMessage(pods []corev1.Pod, mask func(string) string) (message string, known bool) {
	for _, pod := range pods {
		statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
		for _, status := range statuses {
			ended := status.State.Terminated
			if ended == nil {
				continue
			}
			message, known = shorten(mask(uncut(ended.Message))), true
			if ended.ExitCode != 0 {
				return fmt.Sprintf("%s ended with %d: %s", status.Name, ended.ExitCode, lastWords(message)), true
			}
		}
	}
	return message, known
}

// lastWords are the end of what a failed program said. Lines that are indented
// are the stack above it, and those in parentheses are remarks on it.
func lastWords(message string) string {
	var words []string
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, "\n\r ")
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "(") && !strings.HasPrefix(line, "^") {
			words = append(words, line)
		}
	}
	if len(words) == 0 {
		return message
	}
	return strings.Join(words[max(0, len(words)-3):], " / ")
}

// uncut leaves out the line, or the word, that the kubelet may have cut: of a
// long output it keeps the end, which begins anywhere.
func uncut(message string) string {
	if len(message) < kubeletKeeps {
		return message
	}
	line, rest, _ := strings.Cut(message, "\n")
	if strings.TrimSpace(rest) == "" {
		_, rest, _ = strings.Cut(line, " ")
	}
	return rest
}

func shorten(message string) string {
	message = strings.TrimSpace(message)
	if len(message) > maxMessage {
		return "…" + strings.ToValidUTF8(message[len(message)-maxMessage:], "")
	}
	return message
}
