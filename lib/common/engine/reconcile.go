package engine

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"asterism.dev/lib/common/engine/internal/observe"
)

// reconciler makes passes over the objects of one kind.
type reconciler[T Object] struct {
	service Service[T]
	engine  *engine
}

// Reconcile makes one pass over one object.
func (r *reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	defer func(began time.Time) { r.engine.measurePass(began, err) }(time.Now())
	found, err := r.engine.cluster.Current(ctx, observe.Key{Kind: r.engine.kind, NamespacedName: request.NamespacedName})
	if err != nil {
		return reconcile.Result{}, err
	}
	if found == nil {
		r.engine.forget(request)
		return reconcile.Result{}, nil
	}
	cr := found.DeepCopyObject().(T) //nolint:forcetypeassert // the key is of T's kind
	p := &passOf[T]{pass: r.engine.begin(request, found.(T), cr), service: r.service, cr: cr}
	defer p.view.Close()
	if prove := r.service.Proof; prove != nil {
		p.children.Proof = func(child client.Object) bool { return prove(cr, child) }
	}
	stages := r.conditions()
	if cr.GetDeletionTimestamp() == nil && cr.IsPaused() {
		p.hold(ctx, stages)
		return p.finish(ctx)
	}
	unread := p.readHashKey(ctx)
	if cr.GetDeletionTimestamp() != nil {
		if !controllerutil.ContainsFinalizer(cr, p.finalizer()) {
			p.deleting("", Wait("waiting for the finalizers %s", strings.Join(cr.GetFinalizers(), ", ")))
			return p.finish(ctx) // nothing was read that it could report
		}
		gone, err := p.tearDown(ctx)
		if gone || err != nil {
			return reconcile.Result{}, err
		}
		p.planOther(p.report(ctx))
		return p.finish(ctx)
	}
	var refused error
	if len(r.service.Teardown) > 0 {
		refused = p.addFinalizer(ctx)
	}
	switch {
	case errors.IsConflict(refused): // the watch is behind
		return reconcile.Result{}, refused
	case refused != nil:
		p.noteUnready(refused)
	case unread != nil:
		p.noteUnready(unread)
	default:
		p.walk(ctx)
	}
	p.judge(ctx, stages)
	return p.finish(ctx)
}

// judge does what follows the walk: it sets the other conditions, and deletes what no stage wants.
func (p *passOf[T]) judge(ctx context.Context, stages []string) {
	p.noteUnready(p.updateUnreached(ctx, stages))
	p.setAvailable(ctx)
	p.noteUnready(p.sweep(ctx))
	p.noteUnready(p.handDown(ctx, false))
	p.noteUnready(p.report(ctx))
	p.conclude(stages)
}

// conditions are the conditions of the stages.
func (r *reconciler[T]) conditions() (all []string) {
	for _, s := range r.service.Stages {
		all = append(all, s.Condition)
	}
	return all
}

// report calls the service's Report, unless a watch is slow.
func (p *passOf[T]) report(ctx context.Context) (err error) {
	defer p.guard(ctx, "the report", &err)
	if p.service.Report != nil && p.view.Settled() {
		p.service.Report(p.cr, p.in)
	}
	return nil
}

// walk runs the stages in order, until one is not done and does not Continue.
func (p *passOf[T]) walk(ctx context.Context) {
	for _, s := range p.service.Stages {
		err := p.runStage(ctx, s)
		p.reached[s.Condition] = true
		p.setOutcome(s.Condition, outcomeOf(err))
		if s.Apart {
			p.noteApart(err)
			continue
		}
		p.noteUnready(err)
		if !p.done[s.Condition] && !s.Continue {
			return
		}
	}
}

// noteUnready notes for Ready why a stage or another step of the pass is not ready; nil is ready.
func (p *pass) noteUnready(err error) {
	result := outcomeOf(err)
	if result == nil {
		return
	}
	if p.firstUnready == nil {
		p.firstUnready = result
	}
	p.planRetry(result)
}

// noteApart notes why a stage on which Ready does not depend is not ready; nil is ready.
func (p *pass) noteApart(err error) {
	if result := outcomeOf(err); result != nil {
		p.apartUnready = true
		p.warns = p.warns || !resolvesItself(result)
		p.planRetry(result)
	}
}

// sweep deletes children that are no longer needed when every stage is ready: also those of a stage
// that has a Build no longer.
func (p *passOf[T]) sweep(ctx context.Context) (err error) {
	defer p.guard(ctx, "the deletion of old children", &err)
	if p.firstUnready != nil || p.apartUnready {
		return nil
	}
	var building []string
	for _, s := range p.service.Stages {
		if s.Build != nil {
			building = append(building, s.Condition)
		}
	}
	return p.children.Sweep(ctx, building, p.wantedKeys)
}

// finish writes the status, and returns the time of the next pass.
func (p *pass) finish(ctx context.Context) (reconcile.Result, error) {
	if !p.view.Settled() { // a watch is slow: nothing is judged, and the status stays
		return reconcile.Result{RequeueAfter: p.cluster.ReadTimeout}, nil
	}
	shown.set(p.engine, p.request, p.cr.Common().Conditions, p.expiries, p.gathered)
	if err := p.writeStatus(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if p.failure == nil {
		p.memory.failures = 0
		return reconcile.Result{RequeueAfter: p.requeueAfter}, nil
	}
	// An error of Reconcile would drop the times that other stages have set.
	p.wakeAfter(p.memory.retry())
	p.countFailure(p.failure)
	log.FromContext(ctx).Info("the pass failed", "error", p.hide(p.failure.Error()), "again", p.requeueAfter.String())
	return reconcile.Result{RequeueAfter: p.requeueAfter}, nil
}

// forget removes all memory of a deleted object.
func (e *engine) forget(request reconcile.Request) {
	e.cluster.Forget(e.kind, request)
	e.memories.forget(request)
	shown.forget(e, request)
	e.slots.forget(request)
}
