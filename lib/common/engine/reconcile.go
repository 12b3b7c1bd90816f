package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Back-off after an error.
const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// limits of one engine; tests have their own.
type limits struct {
	// workers is how many objects of one kind are walked at a time. A walk that
	// waits for a silent server holds one of them, for DoTimeout at most.
	workers int
	// readTimeout bounds one read. A read from a cache whose watch is forbidden would
	// otherwise block its worker for ever.
	readTimeout time.Duration
	// discoveryRetry is how long a kind that is not served is taken as absent.
	discoveryRetry time.Duration
	// A failed Job is run again after it has been failing for as long again, so
	// that the waits double, within these bounds.
	jobRetryMin, jobRetryMax time.Duration
}

var standard = limits{
	workers: 32, readTimeout: 10 * time.Second, discoveryRetry: 30 * time.Second,
	jobRetryMin: 5 * time.Second, jobRetryMax: 5 * time.Minute,
}

// SetupWithManager adds the kind's controller to the manager.
func (s Service[T]) SetupWithManager(mgr ctrl.Manager) error {
	return s.setUp(mgr, &engine{
		limits:   standard,
		owner:    s.Name,
		gvk:      kindOf(mgr.GetScheme(), newOf[T]()),
		owns:     s.Owns,
		client:   mgr.GetClient(),
		recorder: newRecorder(mgr.GetClient(), s.Name),
		observer: newObserver(standard, mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetCache(), mgr.GetCache(), mgr.GetAPIReader()),
		passes:   newMemory(),
	})
}

func (s Service[T]) setUp(mgr ctrl.Manager, e *engine) error {
	r := &reconciler[T]{service: s, engine: e}
	c, err := controller.New(s.Name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: e.workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryMin, retryMax),
	})
	if err != nil {
		return fmt.Errorf("controller %s: %w", s.Name, err)
	}
	if err := mgr.Add(e.recorder); err != nil {
		return err
	}
	if err := c.Watch(source.Func(e.observer.begin)); err != nil {
		return err
	}
	return c.Watch(source.Kind[client.Object](mgr.GetCache(), newOf[T](), &handler.EnqueueRequestForObject{}, e.observer.notice(e.gvk)))
}

type reconciler[T Object] struct {
	service Service[T]
	engine  *engine
}

// engine is what all passes of one controller share.
type engine struct {
	limits
	owner    string
	gvk      schema.GroupVersionKind
	owns     []client.Object
	client   client.Client
	recorder *recorder
	observer *observer
	passes   *memory
}

// Reconcile makes one pass over one object.
func (r *reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := objectKey{gvk: r.engine.gvk, NamespacedName: request.NamespacedName}
	found, err := r.engine.observer.freshest(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if found == nil {
		r.engine.observer.forget(request)
		r.engine.passes.forget(request)
		return reconcile.Result{}, nil
	}
	cr := found.DeepCopyObject().(T) //nolint:forcetypeassert // the key is of T's kind
	p := r.engine.begin(request, cr)
	adopt(p, r.service, cr)
	defer func() { r.engine.observer.settle(request, p.seen) }()
	if cr.GetDeletionTimestamp() != nil {
		return p.tearDown(ctx, bind(r.service.Teardown, cr))
	}
	if len(r.service.Teardown) > 0 {
		if err := p.addFinalizer(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := p.watchOwned(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.walk(ctx, bind(r.service.Stages, cr))
	if r.service.Available != nil {
		p.judgeAvailable(ctx, func() []Need { return r.service.Available(cr) })
	}
	p.conclude(bind(r.service.Stages, cr))
	return p.finish(ctx)
}

// pass is one walk over the stages of one object.
type pass struct {
	*engine
	request reconcile.Request
	cr      Object
	found   Object           // as the pass found it
	before  *commonv1.Status // of found
	in      Inputs
	seen    map[objectKey]bool
	listed  map[objectKey]bool // children that some builder listed
	done    map[string]bool
	ready   map[string]bool
	reached map[string]bool
	first   *outcome // of the first stage that is not ready
	again   time.Duration
	failure error
	// summarize and proof are the Report and the Proof of the service.
	summarize func()
	proof     func(client.Object) bool
}

// adopt binds what a service says about a whole pass to one object.
func adopt[T Object](p *pass, s Service[T], cr T) {
	if s.Report != nil {
		p.summarize = func() { s.Report(cr, p.in) }
	}
	if s.Proof != nil {
		p.proof = func(child client.Object) bool { return s.Proof(cr, child) }
	}
}

func (e *engine) begin(request reconcile.Request, cr Object) *pass {
	e.observer.own(cr.GetUID(), request)
	found := cr.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	p := &pass{
		engine: e, request: request, cr: cr, found: found, before: found.Common(),
		in:   newInputs(cr.GetNamespace(), e.kind),
		seen: map[objectKey]bool{}, listed: map[objectKey]bool{},
		done: map[string]bool{}, ready: map[string]bool{}, reached: map[string]bool{},
	}
	p.in.isOurs = p.isOurs
	return p
}

func (e *engine) kind(obj client.Object) schema.GroupVersionKind {
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		return gvk
	}
	return kindOf(e.observer.scheme, obj)
}

// observe reads an object and remembers that this pass looked at it.
func (p *pass) observe(ctx context.Context, key objectKey) (client.Object, error) {
	p.seen[key] = true
	return p.observer.get(ctx, p.request, key)
}

// watchOwned makes sure that children which no builder lists any more are seen.
func (p *pass) watchOwned(ctx context.Context) error {
	for _, obj := range p.owns {
		gvk := p.kind(obj)
		if p.observer.serves(gvk) != nil {
			continue // reported by the stage that needs it
		}
		if err := p.observer.watch(ctx, gvk); err != nil {
			return err
		}
	}
	return nil
}

// walk runs the stages in order, until one is not done and does not Continue.
func (p *pass) walk(ctx context.Context, steps []step) {
	for _, s := range steps {
		result := p.run(ctx, s)
		p.reached[s.condition] = true
		p.report(s.condition, result)
		if !p.done[s.condition] && !s.carryOn {
			return
		}
	}
}

// run makes one stage; nil means that it is ready.
func (p *pass) run(ctx context.Context, s step) *outcome {
	return p.guard(ctx, s.condition, func() error { return p.stage(ctx, s) })
}

// guard makes a panic the failure of the stage it comes from, with the line in
// the log.
func (p *pass) guard(ctx context.Context, condition string, do func() error) (result *outcome) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(nil, "a stage panicked", "stage", condition, "panic", p.in.mask(fmt.Sprint(r)), "stack", p.in.mask(string(debug.Stack())))
			p.done[condition] = false
			result = &outcome{reason: ReasonPanic, message: fmt.Sprintf("stage %s panicked: %v", condition, r), retry: true, cause: fmt.Errorf("panic: %v", r)}
		}
	}()
	if err := do(); err != nil {
		return outcomeOf(err)
	}
	return nil
}

func (p *pass) stage(ctx context.Context, s step) error {
	var inputs string
	if s.needs != nil {
		var err error
		if inputs, err = p.gather(ctx, s.needs()); err != nil {
			return err
		}
	}
	var failed error
	if s.do != nil {
		// The UID, because an object may be deleted and made again unseen.
		inputs = hash([]any{inputs, p.specOf(), p.cr.GetUID()})
		failed = p.outside(ctx, s, inputs)
		if failed != nil && (outcomeOf(failed).stalled || !p.doneFor(s, inputs)) {
			return failed
		}
	}
	children, err := p.buildChildren(s)
	if err != nil {
		return err
	}
	return p.applyStage(ctx, s, inputs, children, failed)
}

// applyStage applies the children and judges the stage. failed is a Do that
// does not work at present, for inputs for which it did.
func (p *pass) applyStage(ctx context.Context, s step, inputs string, children []desired, failed error) error {
	hashes := []string{inputs}
	for _, d := range children {
		hashes = append(hashes, d.mode.String(), d.key.Name, d.hash)
	}
	all := hash(hashes)
	if s.do != nil {
		all = inputs + "-" + all
	}
	completed := completedStage(p.before, s.condition)
	settled := completed != nil && completed.Inputs == all
	incomplete := p.applyChildren(ctx, s, children, settled)
	if failed != nil {
		incomplete = failed
	}
	if s.report != nil {
		s.report(p.in)
	}
	if incomplete == nil || (settled && !outcomeOf(incomplete).stalled) {
		p.done[s.condition] = true
	}
	switch {
	case s.do == nil && len(children) == 0:
		p.forgetStage(s.condition) // which has made nothing that could become incomplete
	case incomplete == nil:
		p.complete(s.condition, all)
	}
	return incomplete
}

// doneFor says whether a stage with a Do was done for these inputs.
func (p *pass) doneFor(s step, inputs string) bool {
	completed := completedStage(p.before, s.condition)
	return completed != nil && strings.HasPrefix(completed.Inputs, inputs+"-")
}

// outside runs Do unless it has succeeded for the same inputs and Every has
// not passed since. If it fails, what was observed for the same inputs stands.
func (p *pass) outside(ctx context.Context, s step, inputs string) error {
	last, known := p.passes.get(p.request, s.condition)
	if !known || last.inputs != inputs {
		last, known = effect{inputs: inputs}, false
		if p.doneFor(s, inputs) { // by an earlier process
			last.observed, known = completedStage(p.before, s.condition).Observed, s.every == 0
		}
	}
	p.in.observed[s.condition] = last.observed
	if left := last.rests(); left > 0 {
		return &outcome{reason: last.failed.reason, message: last.failed.message, after: left}
	}
	due := s.every > 0 && time.Since(last.at) >= s.every
	if known && last.failed == nil && !due {
		p.wakeAfter(s.every - time.Since(last.at))
		return nil
	}
	return p.call(ctx, s, last)
}

// call Do, and remember how it went.
func (p *pass) call(ctx context.Context, s step, last effect) error {
	limited, cancel := context.WithTimeout(ctx, DoTimeout)
	defer cancel()
	observed, err := s.do(limited, p.in)
	last.at = time.Now()
	if err != nil {
		last.failed, last.failures = outcomeOf(err), last.failures+1
		p.passes.set(p.request, s.condition, last)
		return err
	}
	p.passes.set(p.request, s.condition, effect{inputs: last.inputs, observed: observed, at: last.at})
	p.in.observed[s.condition] = observed
	p.wakeAfter(s.every)
	return nil
}

func (p *pass) buildChildren(s step) ([]desired, error) {
	if s.build == nil {
		return nil, nil
	}
	children, err := s.build(p.in)
	if err != nil {
		return nil, err
	}
	var all []desired
	for _, child := range children {
		d, err := p.desire(s.condition, child)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// applyChildren ensures every child, even if an earlier one is not complete,
// and returns the first reason why the stage is not.
func (p *pass) applyChildren(ctx context.Context, s step, children []desired, settled bool) error {
	var first error
	keep := map[objectKey]bool{}
	for _, d := range children {
		if err := p.ensure(ctx, s.condition, d, settled); err != nil && first == nil {
			first = err
		}
		if d.mode != absent {
			keep[d.key] = true
			p.listed[d.key] = true
		}
	}
	if s.build == nil {
		return first
	}
	if err := p.prune(ctx, s.condition, keep); err != nil && first == nil {
		first = err
	}
	return first
}

// specOf returns what a user can change of the object.
func (p *pass) specOf() any {
	body, err := p.body(p.cr)
	if err != nil {
		return err.Error()
	}
	return body["spec"]
}

// wakeAfter asks for another pass after d, if d is positive and sooner than
// what was asked before.
func (p *pass) wakeAfter(d time.Duration) {
	if d > 0 && (p.again == 0 || d < p.again) {
		p.again = d
	}
}

// finish writes the status, sweeps, and says when to come back.
func (p *pass) finish(ctx context.Context) (reconcile.Result, error) {
	if p.summarize != nil {
		if result := p.guard(ctx, "Report", func() error { p.summarize(); return nil }); result != nil {
			p.failure = result
		}
	}
	if p.first == nil {
		if err := p.sweep(ctx); err != nil {
			p.failure = err
		}
	}
	if err := p.writeStatus(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if p.failure != nil {
		return reconcile.Result{}, fmt.Errorf("%s", p.in.mask(p.failure.Error())) //nolint:err113 // only its text may leave this pass
	}
	return reconcile.Result{RequeueAfter: p.again}, nil
}
