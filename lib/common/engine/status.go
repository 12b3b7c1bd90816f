package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// maxConditionMessage bounds a condition's message, in bytes; the API allows 32768.
const maxConditionMessage = 4096

// report sets the condition of a stage; nil is ready.
func (p *pass) report(condition string, result *outcome) {
	if result == nil {
		p.ready[condition] = true
		p.set(condition, metav1.ConditionTrue, ReasonComplete, "")
		return
	}
	if p.first == nil {
		p.first = result
	}
	p.wakeAfter(result.after)
	if result.retry && p.failure == nil {
		p.failure = result
	}
	p.set(condition, metav1.ConditionFalse, result.reason, result.message)
}

func (p *pass) set(condition string, status metav1.ConditionStatus, reason, message string) {
	message = p.in.mask(message)
	if len(message) > maxConditionMessage {
		message = strings.ToValidUTF8(message[:maxConditionMessage], "") + "…"
	}
	meta.SetStatusCondition(&p.cr.Common().Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: p.cr.GetGeneration(),
	})
}

// judgeAvailable reports whether users are served.
func (p *pass) judgeAvailable(ctx context.Context, needs func() []Need) {
	unmet := p.guard(ctx, commonv1.ConditionAvailable, func() error {
		_, err := p.gather(ctx, needs())
		return err
	})
	if unmet != nil {
		p.set(commonv1.ConditionAvailable, metav1.ConditionFalse, unmet.reason, unmet.message)
		return
	}
	p.set(commonv1.ConditionAvailable, metav1.ConditionTrue, ReasonComplete, "")
}

// conclude derives Ready and Stalled, and drops conditions that no stage has.
func (p *pass) conclude(steps []step) {
	known := map[string]bool{commonv1.ConditionAvailable: true, commonv1.ConditionReady: true}
	for _, s := range steps {
		known[s.condition] = true
		if !p.reached[s.condition] && meta.FindStatusCondition(p.cr.Common().Conditions, s.condition) == nil {
			p.set(s.condition, metav1.ConditionUnknown, ReasonNotReached, "an earlier stage is not done")
		}
	}
	if p.first == nil {
		p.set(commonv1.ConditionReady, metav1.ConditionTrue, "Ready", "")
	} else {
		p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.first.reason, p.first.message)
		if p.first.stalled {
			known[commonv1.ConditionStalled] = true
			p.set(commonv1.ConditionStalled, metav1.ConditionTrue, p.first.reason, p.first.message)
		}
	}
	status := p.cr.Common()
	status.Conditions = sortConditions(status.Conditions, steps, known)
	status.ObservedGeneration = p.cr.GetGeneration()
	status.Completed = keepCompleted(status.Completed, known)
}

// sortConditions orders conditions as the walk goes; the summary comes last.
func sortConditions(conditions []metav1.Condition, steps []step, known map[string]bool) []metav1.Condition {
	var sorted []metav1.Condition
	add := func(name string) {
		if found := meta.FindStatusCondition(conditions, name); found != nil && known[name] {
			sorted = append(sorted, *found)
		}
	}
	for _, s := range steps {
		add(s.condition)
	}
	for _, name := range []string{commonv1.ConditionAvailable, commonv1.ConditionStalled, commonv1.ConditionReady} {
		add(name)
	}
	return sorted
}

func keepCompleted(all []commonv1.CompletedStage, known map[string]bool) []commonv1.CompletedStage {
	var kept []commonv1.CompletedStage
	for _, c := range all {
		if known[c.Stage] {
			kept = append(kept, c)
		}
	}
	return kept
}

func completedStage(status *commonv1.Status, stage string) *commonv1.CompletedStage {
	for i := range status.Completed {
		if status.Completed[i].Stage == stage {
			return &status.Completed[i]
		}
	}
	return nil
}

// complete records for which inputs the stage was complete.
func (p *pass) complete(stage, inputs string) {
	status := p.cr.Common()
	observed := p.in.observed[stage]
	if existing := completedStage(status, stage); existing != nil {
		existing.Inputs, existing.Observed = inputs, observed
		return
	}
	status.Completed = append(status.Completed, commonv1.CompletedStage{Stage: stage, Inputs: inputs, Observed: observed})
}

func (p *pass) forgetStage(stage string) {
	status := p.cr.Common()
	status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return c.Stage == stage })
}

// writeStatus sends the status if this pass changed it, and then one event for
// all that changed.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.found, p.cr) {
		return nil
	}
	if isProgress(p.found, p.cr) {
		if left := p.passes.progressDue(p.request); left > 0 {
			p.wakeAfter(left)
			return nil
		}
	}
	err := p.observer.ask(p.self(), func() (written, error) {
		if err := p.client.Status().Patch(ctx, p.cr, client.MergeFrom(p.found), client.FieldOwner(p.owner+"-status")); err != nil {
			return written{}, fmt.Errorf("writing the status of %s: %w", p.cr.GetName(), err)
		}
		return answered(p.cr), nil
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	p.passes.writeStatus(p.request, p.first == nil)
	p.announce()
	return nil
}

// isProgress says whether a change of status can wait: it is neither a summary
// that others act on, nor a trouble that came or went. That something new is not
// ready yet, and that something deleted goes, is no news.
func isProgress(before, after Object) bool {
	was, is := newsOf(before.Common()), newsOf(after.Common())
	ready := meta.FindStatusCondition(after.Common().Conditions, commonv1.ConditionReady)
	isNew := len(before.Common().Conditions) == 0 && ready != nil && is[commonv1.ConditionReady] == string(metav1.ConditionFalse)
	goes := after.GetDeletionTimestamp() != nil && ready != nil && ready.Reason == ReasonDeleting
	if isNew || goes {
		for _, summary := range []string{"observedGeneration", commonv1.ConditionReady, commonv1.ConditionAvailable} {
			delete(was, summary)
			delete(is, summary)
		}
	}
	return equality.Semantic.DeepEqual(was, is)
}

// newsOf is what is written at once.
func newsOf(status *commonv1.Status) map[string]string {
	news := map[string]string{"observedGeneration": fmt.Sprint(status.ObservedGeneration)}
	for _, c := range status.Conditions {
		reason := c.Reason
		switch reason {
		case ReasonProgressing, ReasonWaiting, ReasonNotReached, ReasonComplete:
			reason = "" // any other is news, and a Job's failure is remembered by it
		}
		switch c.Type {
		case commonv1.ConditionReady, commonv1.ConditionAvailable, commonv1.ConditionStalled:
			news[c.Type] = string(c.Status) + reason
		default:
			if reason != "" {
				news[c.Type] = reason
			}
		}
	}
	for _, c := range status.Completed {
		if c.Inputs == abandonedStage {
			news["abandoned "+c.Stage] = c.Inputs
		}
	}
	return news
}

func (p *pass) self() objectKey {
	return objectKey{gvk: p.gvk, NamespacedName: p.request.NamespacedName}
}

// announce emits one event that names every condition whose status or reason
// changed in this pass.
func (p *pass) announce() {
	var changes, said []string
	action := commonv1.ConditionReady // or the last that changed
	kind, reason := corev1.EventTypeNormal, "Reconciled"
	for _, now := range p.cr.Common().Conditions {
		if now.Type == commonv1.ConditionReady {
			reason = now.Reason
		}
		was := meta.FindStatusCondition(p.before.Conditions, now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason {
			continue
		}
		if was == nil && now.Reason == ReasonNotReached {
			continue
		}
		if now.Type != commonv1.ConditionReady {
			action = now.Type
		}
		message := now.Message
		if slices.Contains(said, message) { // the summary has the stage's
			message = ""
		}
		said = append(said, message)
		changes = append(changes, strings.TrimSpace(fmt.Sprintf("%s is %s (%s) %s", now.Type, now.Status, now.Reason, message)))
	}
	if len(changes) == 0 {
		return
	}
	if p.failure != nil || (p.first != nil && !p.first.mayPass()) {
		kind = corev1.EventTypeWarning
	}
	p.recorder.record(p.cr, p.gvk, kind, reason, action, strings.ToValidUTF8(bounded(strings.Join(changes, "; "), maxEventNote), ""))
}

// maxEventNote bounds an event's note, in bytes; the API allows 1024.
const maxEventNote = 1000

func bounded(text string, limit int) string {
	if len(text) > limit {
		return text[:limit]
	}
	return text
}
