package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wordingWaits is how long a change of nothing but messages waits to be written:
// "1 of 3 updated" changes faster than people read.
const wordingWaits = 3 * time.Second

// writeStatus once, if it differs from what was found, and then one event for
// all that changed.
func (p *pass) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.stored, p.cr) {
		p.memory.statusWritten(p.request)
		return nil
	}
	if onlyWords(p.stored, p.cr) {
		if left := wordingWaits - time.Since(p.memory.unwrittenSince(p.request)); left > 0 {
			p.wakeAfter(left)
			return nil
		}
	}
	err := p.client().Status().Patch(ctx, p.cr, client.MergeFrom(p.stored), client.FieldOwner(p.applier.Name+"-status"))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of %s: %w", p.cr.GetName(), err))
	}
	p.view.NoteWrite(p.self(), p.cr)
	p.memory.statusWritten(p.request)
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
