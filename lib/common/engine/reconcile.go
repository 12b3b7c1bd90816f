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

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
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
	p := r.engine.begin(request, found.(T), cr, r.proof(cr))
	defer p.view.Close()
	unread := p.readHashKey(ctx)
	if cr.GetDeletionTimestamp() != nil {
		if !controllerutil.ContainsFinalizer(cr, p.finalizer()) {
			p.deleting("", Wait("waiting for the finalizers %s", strings.Join(cr.GetFinalizers(), ", ")))
			return p.finish(ctx, func() error { return nil }) // nothing was read that it could report
		}
		gone, err := p.tearDown(ctx, bind(r.service.Teardown, cr))
		if gone || err != nil {
			return reconcile.Result{}, err
		}
		return p.finish(ctx, r.report(ctx, p, cr))
	}
	stages := bind(r.service.Stages, cr)
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
		p.walk(ctx, stages)
	}
	p.noteUnready(p.updateUnreached(ctx, stages))
	if r.service.Available != nil {
		available := *r.service.Available
		available.Condition = commonv1.ConditionAvailable
		p.setAvailable(ctx, bind([]Stage[T]{available}, cr)[0])
	}
	p.noteUnready(p.sweep(ctx, stages))
	p.conclude(stages)
	return p.finish(ctx, r.report(ctx, p, cr))
}

func (r *reconciler[T]) proof(cr T) func(client.Object) bool {
	if r.service.Proof == nil {
		return nil
	}
	return func(child client.Object) bool { return r.service.Proof(cr, child) }
}

func (r *reconciler[T]) report(ctx context.Context, p *pass, cr T) func() error {
	return func() (err error) {
		defer p.guard(ctx, "the report", &err)
		if r.service.Report != nil {
			r.service.Report(cr, p.in)
		}
		return nil
	}
}

// walk runs the stages in order, until one is not done and does not Continue.
func (p *pass) walk(ctx context.Context, stages []boundStage) {
	for _, s := range stages {
		err := p.runStage(ctx, s)
		p.reached[s.condition] = true
		p.setOutcome(s.condition, outcomeOf(err))
		p.noteUnready(err)
		if !p.done[s.condition] && !s.continues {
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

// sweep deletes children that are no longer needed when every stage is ready.
func (p *pass) sweep(ctx context.Context, stages []boundStage) (err error) {
	defer p.guard(ctx, "the deletion of old children", &err)
	if p.firstUnready != nil {
		return nil
	}
	var names []string
	for _, s := range stages {
		names = append(names, s.condition)
	}
	return p.children.Sweep(ctx, names, p.wantedKeys)
}

// finish calls the report, writes the status, and returns the time of the next pass.
func (p *pass) finish(ctx context.Context, report func() error) (reconcile.Result, error) {
	if !p.view.Settled() { // a watch is slow: nothing is judged, and the status stays
		return reconcile.Result{RequeueAfter: p.readTimeout}, nil
	}
	if err := report(); err != nil {
		p.failure = outcomeOf(err)
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
	log.FromContext(ctx).Info("the pass failed", "error", p.in.masks.Hide(p.failure.Error()), "again", p.requeueAfter.String())
	return reconcile.Result{RequeueAfter: p.requeueAfter}, nil
}

// forget removes all memory of a deleted object.
func (e *engine) forget(request reconcile.Request) {
	e.cluster.Forget(e.kind, request)
	e.memories.forget(request)
	shown.forget(e, request)
	e.slots.forget(request)
}
