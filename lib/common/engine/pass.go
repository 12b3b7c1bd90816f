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
	children *apply.Controller
	recorder record.EventRecorder
	home     *corev1.ObjectReference // the operator's pod; nil outside of a cluster
	memory   *memory
}

// pass is one walk over the stages of one object.
type pass struct {
	*engine
	request  reconcile.Request
	cr       Object           // which the pass changes
	found    Object           // as the pass found it
	before   *commonv1.Status // of found
	view     *observe.View
	children *apply.Children
	in       Inputs

	done    map[string]bool // stages by condition
	reached map[string]bool
	listed  []observe.Key // children that some builder listed
	first   *outcome      // of the first stage that is not ready
	again   time.Duration // after which another pass is due; 0: none
	failure error         // of the first stage that is to be retried
}

func (e *engine) begin(request reconcile.Request, found, cr Object, proof func(client.Object) bool) *pass {
	p := &pass{
		engine: e, request: request, cr: cr, found: found, before: found.Common(),
		view: e.cluster.View(request, cr.GetUID()),
		done: map[string]bool{}, reached: map[string]bool{},
	}
	p.children = &apply.Children{Controller: e.children, View: p.view, Owner: cr, Kind: e.kind, Proof: proof}
	p.in = newInputs(cr.GetNamespace(), e.cluster.Kind, p.children.IsOurs)
	p.children.Mask = p.in.masks.Hide
	return p
}

// wakeAfter asks for another pass after d, if d is positive and sooner than
// what was asked before.
func (p *pass) wakeAfter(d time.Duration) {
	if d > 0 && (p.again == 0 || d < p.again) {
		p.again = d
	}
}

// guard makes a panic the failure of the stage it comes from, with the line in
// the log.
func (p *pass) guard(ctx context.Context, condition string, do func() error) (result *outcome) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(nil, "a stage panicked", "stage", condition, "panic", p.in.masks.Hide(fmt.Sprint(r)), "stack", p.in.masks.Hide(string(debug.Stack())))
			p.done[condition] = false
			result = &outcome{Reason: ReasonPanic, Message: fmt.Sprintf("stage %s panicked: %v", condition, r), Retry: true, Cause: fmt.Errorf("panic: %v", r)}
		}
	}()
	if err := do(); err != nil {
		return outcomeOf(err)
	}
	return nil
}

// limits of one engine; tests have their own.
type limits struct {
	// workers is how many objects of one kind are walked at a time. A walk that
	// waits for a silent server holds one of them, for DoTimeout at most.
	workers int
	// readTimeout and discoveryRetry are those of observe.Options.
	readTimeout, discoveryRetry time.Duration
	// jobRetryMin and jobRetryMax are those of apply.Controller.
	jobRetryMin, jobRetryMax time.Duration
}
