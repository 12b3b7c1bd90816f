package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// messageDelay is the time for which a change of messages alone waits to be written:
// "1 of 3 pods updated" changes faster than users read.
const messageDelay = 3 * time.Second

// writeStatus writes the status once, if it differs from the stored status, and then one
// event for all changes.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.stored, p.cr) {
		p.memory.unwrittenSince = time.Time{}
		return nil
	}
	if onlyMessages(p.stored, p.cr) {
		if p.memory.unwrittenSince.IsZero() {
			p.memory.unwrittenSince = time.Now()
		}
		if left := messageDelay - time.Since(p.memory.unwrittenSince); left > 0 {
			p.wakeAfter(left)
			return nil
		}
	}
	// The answer has the newest spec, which this pass has not judged.
	written := p.cr.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	ctx, cancel := context.WithTimeout(ctx, p.cluster.ReadTimeout)
	defer cancel()
	// The version is sent because an object of this name may be another object by now. The API server
	// ignores a UID in a patch of the status.
	patch := client.MergeFromWithOptions(p.stored, client.MergeFromWithOptimisticLock{})
	err := p.client().Status().Patch(ctx, written, patch, client.FieldOwner(p.settings.Name+"-status"))
	if errors.IsConflict(err) {
		p.view.NoteRefused(p.self(), p.stored)
		return nil // the event of the newer version starts a pass
	}
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of %s: %w", p.self(), err))
	}
	p.view.NoteVersion(p.self(), written)
	p.memory.unwrittenSince = time.Time{}
	p.announce()
	return nil
}

// onlyMessages tells whether two versions of an object differ only in the messages of their
// conditions.
func onlyMessages(before, after Object) bool {
	return equality.Semantic.DeepEqual(withoutMessages(before), withoutMessages(after))
}

func withoutMessages(obj Object) Object {
	copied := obj.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	for i := range copied.Common().Conditions {
		copied.Common().Conditions[i].Message = ""
	}
	return copied
}
