package engine

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// buildChildren returns the stamped children that the stage wants.
func (p *passOf[T]) buildChildren(ctx context.Context, s Stage[T]) (apply.StampedChildren, error) {
	if s.Build == nil {
		return nil, nil
	}
	built, err := s.Build(p.cr, p.in)
	if err != nil {
		return nil, err
	}
	var children []apply.Child
	for _, child := range built {
		children = append(children, unwrap(child))
	}
	return p.children.Stamp(ctx, s.Condition, children)
}

// applyChildren applies the children in order, makes them inputs of later stages, and deletes
// children that the builder no longer lists. It continues after a child that is not complete, and
// returns the first such outcome. It stops at a conflict, returns it and deletes nothing: later
// children may give rights to the foreign object, and what it stands in the way of may serve users
// under its old name.
func (p *passOf[T]) applyChildren(ctx context.Context, s Stage[T], children apply.StampedChildren, completedBefore bool, record *commonv1.CompletedStage) (incomplete error) {
	if s.Build == nil {
		return nil
	}
	stage := apply.Stage{Name: s.Condition, Last: p.lastOf(s.Condition), CompletedBefore: completedBefore && p.isUnchanged(s.Condition)}
	for _, want := range children {
		result, err := p.children.Ensure(ctx, stage, want)
		if err != nil && outcomeOf(err).IsConflict() {
			p.planOther(incomplete)
			p.wantedKeys = append(p.wantedKeys, children.WantedKeys()...)
			return err
		}
		if incomplete == nil {
			incomplete = err
		} else {
			p.planOther(err)
		}
		if result.Awaited.Name != "" {
			p.wantedKeys = append(p.wantedKeys, result.Awaited)
		}
		if result.Object != nil {
			record.Children = append(record.Children, result.Title)
			p.addToInputs(result)
		}
	}
	p.wantedKeys = append(p.wantedKeys, children.WantedKeys()...)
	if err := p.children.Prune(ctx, s.Condition, p.wantedKeys); err != nil {
		p.planRetry(outcomeOf(err))
		return cmp.Or(incomplete, err)
	}
	return incomplete
}

// lastOf returns the condition of a stage before this pass, nil for none. A stage of a teardown
// has no condition of its own: Ready has its message.
func (p *pass) lastOf(stage string) *metav1.Condition {
	if p.cr.GetDeletionTimestamp() == nil {
		return meta.FindStatusCondition(p.before.Conditions, stage)
	}
	ready := meta.FindStatusCondition(p.before.Conditions, commonv1.ConditionReady)
	if ready == nil {
		return nil
	}
	message, isOfStage := strings.CutPrefix(ready.Message, stage+": ")
	if !isOfStage {
		return nil
	}
	last := *ready
	last.Message = message
	return &last
}

// addToInputs makes a child, its data and the result of its Job inputs.
func (p *pass) addToInputs(r apply.Result) {
	p.in.objects[r.Key] = r.Object
	if r.Data != nil {
		p.mask(r.Key, r.Data)
		p.in.data[r.Key] = r.Data
	}
	if r.Run != "" {
		p.in.results[r.Run] = r.Message
	}
}

// readChildren returns every child, by its TitleOf. The children become inputs as well, so
// that a Report can read them.
func (p *pass) readChildren(ctx context.Context) (map[string]client.Object, error) {
	all, err := p.children.All(ctx)
	if err != nil {
		return nil, err
	}
	byTitle := map[string]client.Object{}
	for _, listed := range all {
		key := observe.KeyOf(p.view.KindOf(listed), listed)
		child, err := p.view.Get(ctx, key) // may return a newer version
		if err != nil {
			return nil, err
		}
		if child == nil || !p.children.IsChild(child) {
			continue
		}
		byTitle[apply.TitleOf(key.Kind.Kind, p.cr, child)] = child
		if _, known := p.in.objects[key]; !known {
			p.in.objects[key] = child
		}
	}
	return byTitle, nil
}
