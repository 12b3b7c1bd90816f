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

// engine has the state that all passes of one controller share.
type engine struct {
	kind     schema.GroupVersionKind
	shown    []string // the conditions of stages that are Shown
	cluster  *observe.Cluster
	settings *apply.Settings
	recorder record.EventRecorder
	pod      *corev1.ObjectReference // of the operator; nil outside a cluster
	memories *memories
	// fallbackHashKey is a random key of this process, for hashes while the Secret with the key
	// cannot be read.
	fallbackHashKey []byte
	workers         int
	slots           *slots
}

// pass is one look at one object: a walk over its stages, or its teardown.
type pass struct {
	*engine
	request  reconcile.Request
	cr       Object           // the copy that the pass changes
	stored   Object           // as Current returned it, mostly from the cache: the base of the status patch
	before   *commonv1.Status // at the beginning of the pass
	memory   *memory          // of earlier passes over the object
	view     *observe.View
	children *apply.Children
	in       Inputs

	done         map[string]bool   // by the condition of a stage
	reached      map[string]bool   // by the condition of a stage
	remarks      map[string]string // of Judge, by the condition of a stage
	wantedKeys   []observe.Key     // of the children of the stages so far
	firstUnready *outcome          // of the first stage that is not ready, or not torn down
	apartUnready bool              // a stage that is Apart is not ready
	warns        bool              // a stage that is Apart needs an action of a user
	requeueAfter time.Duration     // until the next pass; 0: none
	failure      error             // the first outcome with Retry: finish sets the time of the next pass

	// held are the sizes of the data that the pass holds, in bytes.
	held map[observe.Key]int
	// expiries are those of users' certificates, by the kind and name of the Secret or ConfigMap.
	expiries map[string]time.Time
	gathered bool // every stage has gathered its needs, so that expiries has all certificates
}

func (e *engine) begin(request reconcile.Request, found, cr Object) *pass {
	p := &pass{
		engine: e, request: request, cr: cr, stored: found, before: found.Common(), memory: e.memories.get(request, cr.GetUID()),
		view: e.cluster.View(request, cr.GetUID()),
		done: map[string]bool{}, reached: map[string]bool{}, remarks: map[string]string{}, expiries: map[string]time.Time{}, held: map[observe.Key]int{},
	}
	p.children = &apply.Children{Settings: e.settings, Memory: p.memory.children, View: p.view, Owner: cr, OwnerKind: e.kind}
	p.in = newInputs(cr.GetNamespace(), e.cluster.KindOf, p.children.IsChild)
	p.children.Mask = p.hide
	return p
}

// hide hides the values of Secrets in a message of a condition, an event or a log.
func (p *pass) hide(message string) string {
	if p.in.masks.HidesAll(message) {
		Dropped(BoundHiddenMessage)
	}
	return p.in.masks.Hide(message)
}

func (p *pass) client() client.Client { return p.settings.Client }

func (p *pass) self() observe.Key {
	return observe.Key{Kind: p.kind, NamespacedName: p.request.NamespacedName}
}

// wakeAfter requests another pass after d, if d is positive and earlier than the requests
// before.
func (p *pass) wakeAfter(d time.Duration) {
	if d > 0 && (p.requeueAfter == 0 || d < p.requeueAfter) {
		p.requeueAfter = d
	}
}

// planRetry requests another pass if the outcome has After or Retry.
func (p *pass) planRetry(result *outcome) {
	p.wakeAfter(result.After)
	if result.Retry && p.failure == nil {
		p.failure = result
	}
}

// planOther plans the retry of an outcome, nil for none, beside the one that decides about a stage.
func (p *pass) planOther(err error) {
	if err != nil {
		p.planRetry(outcomeOf(err))
	}
}

// guard turns a panic of a step into its error, and logs the stack. Calls of it MUST be
// deferred: elsewhere, recover has no effect.
func (p *pass) guard(ctx context.Context, step string, err *error) {
	r := recover()
	if r == nil {
		return
	}
	log.FromContext(ctx).Error(nil, "a panic", "step", step, "panic", p.hide(fmt.Sprint(r)), "stack", p.hide(string(debug.Stack())))
	*err = &outcome{Reason: reasonPanic, Message: fmt.Sprintf("%s panicked: %v", step, r), Retry: true, Cause: fmt.Errorf("panic: %v", r)}
}
