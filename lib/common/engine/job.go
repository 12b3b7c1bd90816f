package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	conflictRetry = time.Second
	// maxMessage bounds what of a termination message is stored, in bytes.
	maxMessage = 2048
	// kubeletKeeps is how much of a container's output becomes its message; of a
	// file it is more.
	kubeletKeeps = 2048
)

// ensureOnce runs the Job if no Job of this content has been complete.
func (p *pass) ensureOnce(ctx context.Context, stage string, d desired) error {
	superseded, err := p.removeSuperseded(ctx, d)
	if err != nil {
		return err
	}
	if superseded != "" {
		return progressing("Job %s is superseded and being deleted", superseded)
	}
	current, err := p.observe(ctx, d.key)
	if err != nil {
		return err
	}
	if current == nil {
		if _, err := p.create(ctx, d); err != nil {
			return err
		}
		return p.running(stage, d.key)
	}
	if p.isOurs(current) && current.GetDeletionTimestamp() != nil {
		return p.running(stage, d.key)
	}
	job, ok := current.(*batchv1.Job)
	if !ok {
		return fmt.Errorf("%s is a %T", d.key, current)
	}
	if err := p.claimed(d.key, job); err != nil {
		return err
	}
	finished, failed := jobEnd(job)
	if finished == nil {
		return p.running(stage, d.key)
	}
	if failed {
		return p.retry(ctx, stage, d.key, job)
	}
	return p.collect(ctx, d, job)
}

// collect the result of a complete Job.
func (p *pass) collect(ctx context.Context, d desired, job *batchv1.Job) error {
	message, known, err := p.result(ctx, d.key, job)
	if err != nil {
		return err
	}
	if !known {
		if err := p.delete(ctx, d.key, job); err != nil {
			return err
		}
		return progressing("%s is complete, but its result was lost with its pod: running it again", d.key)
	}
	p.in.results[d.run] = message
	p.in.objects[d.key] = job
	return nil
}

// removeSuperseded deletes runs of other content; the new one waits until they
// and their pods are gone, so that two never overlap.
func (p *pass) removeSuperseded(ctx context.Context, d desired) (string, error) {
	runs := map[objectKey]bool{}
	for key, labels := range p.observer.childrenOf(p.cr.GetUID()) {
		runs[key] = labels.runOf == d.run
	}
	// After a start of the operator the index may know less than the cache.
	cached, err := p.observer.cached(ctx, d.key.gvk, d.key.Namespace, map[string]string{labelOwnerUID: string(p.cr.GetUID()), labelRunOf: d.run})
	if err != nil {
		return "", err
	}
	for _, job := range cached {
		runs[objectKey{gvk: d.key.gvk, NamespacedName: client.ObjectKeyFromObject(job)}] = true
	}
	for key, isRun := range runs {
		if !isRun || key == d.key {
			continue
		}
		old, err := p.observe(ctx, key)
		if err != nil {
			return "", err
		}
		if old == nil || !p.isOurs(old) {
			continue
		}
		return key.Name, p.delete(ctx, key, old)
	}
	return "", nil
}

// running keeps the last failure in sight while the next run goes on.
func (p *pass) running(stage string, key objectKey) error {
	last := meta.FindStatusCondition(p.before.Conditions, stage)
	if last != nil && last.Reason == ReasonJobFailed {
		const again = "running again; "
		return &outcome{reason: ReasonJobFailed, message: again + strings.TrimPrefix(last.Message, again)}
	}
	return progressing("%s is running", key)
}

// retry waits as long as the stage has been failing before it runs the Job
// again, which needs no counter and survives a restart of the operator.
func (p *pass) retry(ctx context.Context, stage string, key objectKey, job *batchv1.Job) error {
	message, known, err := p.result(ctx, key, job)
	if err != nil {
		return err
	}
	end, _ := jobEnd(job)
	if !known {
		message += end.Message
	}
	failed := end.LastTransitionTime.Time
	wait := p.jobRetryMin
	if last := meta.FindStatusCondition(p.before.Conditions, stage); last != nil && last.Status == metav1.ConditionFalse {
		wait = p.retryWait(last.LastTransitionTime.Time, failed)
	}
	if left := time.Until(failed.Add(wait)); left > 0 {
		return &outcome{reason: ReasonJobFailed, message: fmt.Sprintf("%s failed: %s", key, message), after: left}
	}
	if err := p.delete(ctx, key, job); err != nil {
		return err
	}
	return &outcome{reason: ReasonJobFailed, message: fmt.Sprintf("running again; %s failed: %s", key, message)}
}

func (l limits) retryWait(failing, failed time.Time) time.Duration {
	return min(max(failed.Sub(failing), l.jobRetryMin), l.jobRetryMax)
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
func (p *pass) result(ctx context.Context, key objectKey, job *batchv1.Job) (message string, known bool, err error) {
	if stored, ok := job.Annotations[annotationResult]; ok {
		return stored, true, nil
	}
	var pods corev1.PodList
	ctx, cancel := context.WithTimeout(ctx, p.readTimeout)
	defer cancel()
	if err := p.observer.live.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return "", false, fmt.Errorf("listing the pods of %s: %w", key, err)
	}
	message, known = terminationMessage(pods.Items, p.in.mask)
	if !known {
		return "its pod is gone, and with it the message; ", false, nil
	}
	note := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": key.gvk.GroupVersion().String(), "kind": key.gvk.Kind,
		"metadata": map[string]any{
			"name": job.Name, "namespace": job.Namespace, "uid": string(job.UID),
			"annotations": map[string]any{annotationResult: message},
		},
	}}
	err = p.observer.ask(key, func() (written, error) {
		err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(note), client.FieldOwner(p.owner+"-result"), client.ForceOwnership)
		return written{version: note.GetResourceVersion()}, err
	})
	if err != nil {
		return "", false, fmt.Errorf("storing the result of %s: %w", key, err)
	}
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
