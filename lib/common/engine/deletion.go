package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Abandon says that a stage of a teardown cannot be undone, ever: the means are
// gone. What is left behind is listed in an event, and the teardown goes on.
func Abandon(format string, args ...any) error {
	return &abandoned{left: fmt.Sprintf(format, args...)}
}

type abandoned struct{ left string }

func (a *abandoned) Error() string { return "left behind: " + a.left }

// finalizer of the kind, for example nova.asterism.dev/nova-cell.
func (p *pass) finalizer() string { return p.gvk.Group + "/" + p.owner }

// addFinalizer before the first effect that deletion has to undo.
func (p *pass) addFinalizer(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.cr, p.finalizer()) {
		return nil
	}
	return p.patchFinalizers(ctx, func() { controllerutil.AddFinalizer(p.cr, p.finalizer()) })
}

// patchFinalizers guards the list with the resourceVersion, because a merge
// patch replaces it as a whole.
func (p *pass) patchFinalizers(ctx context.Context, change func()) error {
	base := p.cr.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	change()
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	return p.observer.ask(p.self(), func() (written, error) {
		if err := p.client.Patch(ctx, p.cr, patch, client.FieldOwner(p.owner+"-finalizer")); err != nil {
			return written{}, fmt.Errorf("finalizer of %s: %w", p.cr.GetName(), err)
		}
		p.found = p.cr.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
		return answered(p.found), nil
	})
}

// tearDown walks the way down and lets the object go at its end.
func (p *pass) tearDown(ctx context.Context, steps []step) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(p.cr, p.finalizer()) || p.passes.hasLetGo(p.request, p.cr.GetUID()) {
		return reconcile.Result{}, nil
	}
	for _, s := range steps {
		if abandonedBefore(p.before, s.condition) {
			p.done[s.condition] = true
			continue
		}
		result := p.run(ctx, s)
		if left, ok := asAbandoned(result); ok {
			p.complete(s.condition, abandonedStage)
			// A namespace that is being deleted takes no events, and then goes with them.
			log.FromContext(ctx).Info("left behind", "stage", s.condition, "what", p.in.mask(left))
			p.recorder.record(p.cr, p.gvk, corev1.EventTypeWarning, "LeftBehind", s.condition, bounded(p.in.mask(left), maxEventNote))
			p.done[s.condition] = true
			continue
		}
		if result != nil {
			p.first = &outcome{reason: ReasonDeleting, message: s.condition + ": " + result.message}
			p.wakeAfter(result.after)
			if result.reason != ReasonProgressing && result.reason != ReasonWaiting {
				p.first.reason = result.reason
			}
			if result.retry {
				p.failure = result
			}
			p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.first.reason, p.first.message)
			p.cr.Common().ObservedGeneration = p.cr.GetGeneration()
			return p.finish(ctx)
		}
	}
	if err := p.patchFinalizers(ctx, func() { controllerutil.RemoveFinalizer(p.cr, p.finalizer()) }); err != nil {
		return reconcile.Result{}, ignoreGone(err)
	}
	p.observer.forgetWrite(p.self(), p.found.GetResourceVersion())
	p.passes.letGo(p.request, p.cr.GetUID())
	return reconcile.Result{}, nil
}

// abandonedStage is recorded in the place of a stage's inputs.
const abandonedStage = "abandoned"

func abandonedBefore(status *commonv1.Status, stage string) bool {
	completed := completedStage(status, stage)
	return completed != nil && completed.Inputs == abandonedStage
}

func asAbandoned(o *outcome) (string, bool) {
	var a *abandoned
	if o == nil || !errors.As(o.cause, &a) {
		return "", false
	}
	return strings.TrimSpace(a.left), true
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
