package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// ensureOnce runs the Job unless a Job with this content exists.
func (c *Children) ensureOnce(ctx context.Context, stage Stage, want stampedChild) (Result, error) {
	if awaited, err := c.deleteOneSuperseded(ctx, want); err != nil {
		return Result{Awaited: awaited}, err
	}
	current, err := c.View.Get(ctx, want.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		if current, err = c.create(ctx, want); err != nil {
			return Result{}, err
		}
	}
	job, ok := current.(*batchv1.Job)
	if !ok {
		return Result{}, fmt.Errorf("%s is a %T", want.key, current)
	}
	if !c.IsChild(job) {
		return Result{}, ForeignOutcome(want.key, job)
	}
	ended, failed := jobEnd(job)
	switch {
	case ended == nil || job.DeletionTimestamp != nil:
		return Result{}, c.explained(ctx, want.key, job, want.Explain, running(stage, want.key))
	case failed:
		return Result{}, c.waitOrDelete(ctx, stage, want.key, job)
	}
	return c.resultOrRerun(ctx, stage, want, job)
}

// resultOrRerun returns the result of a complete Job, or deletes a Job whose result is
// lost, so that it runs again.
func (c *Children) resultOrRerun(ctx context.Context, stage Stage, want stampedChild, job *batchv1.Job) (Result, error) {
	message, known, err := c.storeResult(ctx, stage, want.key, job)
	if err != nil {
		return Result{}, err
	}
	if !known {
		if err := c.delete(ctx, want.key, job); err != nil {
			return Result{}, err
		}
		c.reportEnd(stage, job)
		return Result{}, progressing("%s is complete, but its result was lost with its pod: the Job runs again", want.key)
	}
	c.Memory.forget(want.key)
	result := c.resultOf(want, job)
	result.Run, result.Message = want.run, message
	return result, nil
}

// deleteOneSuperseded deletes a Job of this name with other content, or returns its key while its
// end is awaited; the error is nil if no such Job exists. The new Job is created when all such Jobs
// and their pods are deleted, so that two runs never overlap.
func (c *Children) deleteOneSuperseded(ctx context.Context, want stampedChild) (awaited observe.Key, err error) {
	jobs, err := c.View.Children(ctx, want.key.Kind, c.Owner.GetUID())
	if err != nil {
		return awaited, err
	}
	for _, job := range jobs {
		if job.GetLabels()[labelRunOf] != want.run || job.GetName() == want.key.Name || !c.IsChild(job) {
			continue
		}
		key := observe.KeyOf(want.key.Kind, job)
		current, err := c.View.Get(ctx, key) // may return a newer version
		if err != nil {
			return awaited, err
		}
		if current == nil || !c.IsChild(current) {
			continue
		}
		if want.Uninterrupted {
			switch runs, err := c.runs(ctx, current); {
			case err != nil:
				return key, err
			case runs:
				return key, progressing("%s is superseded, and is replaced when it ends", key)
			}
		}
		c.Memory.forget(key)
		if err := c.delete(ctx, key, current); err != nil {
			return awaited, err
		}
		return awaited, progressing("%s is superseded and being deleted", key)
	}
	return awaited, nil
}

// runs tells whether a pod of a Job runs that is not being deleted. The end of the pod changes the
// Job, which starts a pass.
func (c *Children) runs(ctx context.Context, job client.Object) (bool, error) {
	if job.GetDeletionTimestamp() != nil {
		return false, nil
	}
	pods, err := c.pods(ctx, job)
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }), err
}

// running is the outcome of a Job that runs. It keeps the message of the last failure.
func running(stage Stage, key observe.Key) *Outcome {
	if stage.Last != nil && stage.Last.Reason == ReasonJobFailed {
		const again = "running again; "
		return &Outcome{Reason: ReasonJobFailed, Message: again + strings.TrimPrefix(stage.Last.Message, again)}
	}
	return progressing("%s is running", key)
}

// waitOrDelete deletes a failed Job, so that it runs again. Before, it waits for as long as the
// Job has been failing, which needs no counter. A restart of the operator forgets earlier
// failures.
func (c *Children) waitOrDelete(ctx context.Context, stage Stage, key observe.Key, job *batchv1.Job) error {
	message, known, err := c.storeResult(ctx, stage, key, job)
	if err != nil {
		return err
	}
	end, _ := jobEnd(job)
	if !known {
		message += end.Message
	}
	failed := end.LastTransitionTime.Time
	first, failedBefore := c.Memory.failures[key]
	if !failedBefore {
		first, c.Memory.failures[key] = failed, failed
	}
	outcome := &Outcome{Reason: ReasonJobFailed, Message: fmt.Sprintf("%s failed: %s", key, message)}
	if outcome.After = time.Until(failed.Add(c.RetryWait(first, failed))); outcome.After > 0 {
		return outcome
	}
	outcome.After, outcome.Message = 0, "running again; "+outcome.Message
	if err := c.delete(ctx, key, job); err != nil {
		return err
	}
	if !known {
		c.reportEnd(stage, job)
	}
	return outcome
}

// RetryWait is the time between the last failure of a Job and its next run, if it has failed for
// the first time at the time first.
func (c Limits) RetryWait(first, last time.Time) time.Duration {
	return min(max(last.Sub(first), c.JobRetryMin), c.JobRetryMax)
}

// storeResult returns the Job's termination message, and copies it from the pod to an
// annotation of the Job, because the pod may be deleted; known is false if the pod no
// longer exists.
func (c *Children) storeResult(ctx context.Context, stage Stage, key observe.Key, job *batchv1.Job) (message string, known bool, err error) {
	if stored, ok := job.Annotations[annotationResult]; ok {
		return stored, true, nil
	}
	pods, err := c.pods(ctx, job)
	if err != nil {
		return "", false, err
	}
	message, known = terminationMessage(pods, c.Mask)
	if !known {
		return "its pod was deleted with the message; ", false, nil
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
	c.View.NoteVersion(key, note)
	c.reportEnd(stage, job)
	return message, true, nil
}

// reportEnd reports a Job that has ended: when its result is stored or, if its result is lost, when
// the Job is deleted. Each happens once.
func (c *Children) reportEnd(stage Stage, job *batchv1.Job) {
	end, failed := jobEnd(job)
	began := job.CreationTimestamp
	if job.Status.StartTime != nil {
		began = *job.Status.StartTime
	}
	c.JobEnded(stage.Name, !failed, max(0, end.LastTransitionTime.Sub(began.Time)))
}
