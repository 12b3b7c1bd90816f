package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/observe"
)

const (
	// wordingWaits is how long a change of nothing but messages waits to be written:
	// "1 of 3 updated" changes faster than people read.
	wordingWaits = 3 * time.Second
	// maxEventNote bounds an event's note, in bytes; the API allows 1024.
	maxEventNote = 1000
)

// writeStatus once, if it differs from what was found, and then one event for
// all that changed.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.found, p.cr) {
		p.memory.waitsNot(p.request)
		return nil
	}
	if onlyWords(p.found, p.cr) {
		if left := wordingWaits - time.Since(p.memory.waitingSince(p.request)); left > 0 {
			p.wakeAfter(left)
			return nil
		}
	}
	err := p.client().Status().Patch(ctx, p.cr, client.MergeFrom(p.found), client.FieldOwner(p.children.Name+"-status"))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of %s: %w", p.cr.GetName(), err))
	}
	p.view.Wrote(p.self(), p.cr)
	p.memory.waitsNot(p.request)
	p.announce()
	return nil
}

// onlyWords says whether two versions of an object differ in nothing but the
// messages of their conditions.
func onlyWords(before, after Object) bool {
	return equality.Semantic.DeepEqual(withoutWords(before), withoutWords(after))
}

func withoutWords(obj Object) Object {
	silent := obj.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	for i := range silent.Common().Conditions {
		silent.Common().Conditions[i].Message = ""
	}
	return silent
}

func (p *pass) client() client.Client { return p.children.Client }

func (p *pass) self() observe.Key {
	return observe.Key{Kind: p.kind, NamespacedName: p.request.NamespacedName}
}

// announce emits one event that names every condition whose status or reason
// changed in this pass.
func (p *pass) announce() {
	var changes, said []string
	reason := "Reconciled"
	for _, now := range p.cr.Common().Conditions {
		if now.Type == commonv1.ConditionReady {
			reason = now.Reason
		}
		was := meta.FindStatusCondition(p.before.Conditions, now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason || was == nil && now.Reason == ReasonNotReached {
			continue
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
	kind := corev1.EventTypeNormal
	if p.failure != nil || (p.first != nil && !mayPass(p.first)) {
		kind = corev1.EventTypeWarning
	}
	p.recorder.Event(p.cr, kind, reason, bounded(strings.Join(changes, "; ")))
}

func bounded(note string) string {
	return strings.ToValidUTF8(note[:min(len(note), maxEventNote)], "")
}
