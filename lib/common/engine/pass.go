package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// engine is what all passes of one controller share.
type engine struct {
	limits
	kind     schema.GroupVersionKind
	cluster  *observe.Cluster
	applier  *apply.Shared
	recorder record.EventRecorder
	pod      *corev1.ObjectReference // of the operator; nil outside of a cluster
	memory   *memory
}

// pass is one look at one object: a walk over its stages, or its teardown.
type pass struct {
	*engine
	request  reconcile.Request
	cr       Object           // which the pass changes
	stored   Object           // as the API server has it, without the changes of the pass
	before   *commonv1.Status // when the pass began
	view     *observe.View
	children *apply.Children
	in       Inputs

	done         map[string]bool // stages by condition
	reached      map[string]bool
	wantedKeys   []observe.Key // of the children that the stages so far want
	firstUnready *outcome      // of the first stage that is not ready, or is not torn down
	again        time.Duration // after which another pass is due; 0: none
	failure      error         // makes the controller try again with back-off; one is enough
}

func (e *engine) begin(request reconcile.Request, found, cr Object, proof func(client.Object) bool) *pass {
	p := &pass{
		engine: e, request: request, cr: cr, stored: found, before: found.Common(),
		view: e.cluster.View(request, cr.GetUID()),
		done: map[string]bool{}, reached: map[string]bool{},
	}
	p.children = &apply.Children{Shared: e.applier, View: p.view, Owner: cr, OwnerKind: e.kind, Proof: proof}
	p.in = newInputs(cr.GetNamespace(), e.cluster.KindOf, p.children.IsOurs)
	p.children.Mask = p.in.masks.Hide
	return p
}

func (p *pass) client() client.Client { return p.applier.Client }

func (p *pass) self() observe.Key {
	return observe.Key{Kind: p.kind, NamespacedName: p.request.NamespacedName}
}

// wakeAfter asks for another pass after d, if d is positive and sooner than
// what was asked before.
func (p *pass) wakeAfter(d time.Duration) {
	if d > 0 && (p.again == 0 || d < p.again) {
		p.again = d
	}
}

// comeBack asks for another pass when the outcome says so.
func (p *pass) comeBack(result *outcome) {
	p.wakeAfter(result.After)
	if result.Retry && p.failure == nil {
		p.failure = result
	}
}

// guard makes a panic the outcome of the stage it comes from, with the line in the
// log.
func (p *pass) guard(ctx context.Context, condition string, do func() error) (result *outcome) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(nil, "a stage panicked", "stage", condition, "panic", p.in.masks.Hide(fmt.Sprint(r)), "stack", p.in.masks.Hide(string(debug.Stack())))
			p.done[condition] = false
			result = &outcome{Reason: reasonPanic, Message: fmt.Sprintf("stage %s panicked: %v", condition, r), Retry: true, Cause: fmt.Errorf("panic: %v", r)}
		}
	}()
	if err := do(); err != nil {
		return outcomeOf(err)
	}
	return nil
}

// limits of one engine; tests have their own.
type limits struct {
	// workers is how many passes over objects of one kind are made at a time. A pass that
	// waits for a silent server holds one worker, for DoTimeout in each Do, and for
	// readTimeout in each read.
	workers int
	// readTimeout and discoveryRetry are those of observe.Options.
	readTimeout, discoveryRetry time.Duration
	// jobRetryMin and jobRetryMax are those of apply.Shared.
	jobRetryMin, jobRetryMax time.Duration
}
