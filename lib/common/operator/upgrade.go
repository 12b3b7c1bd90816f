package operator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// operatorCondition is the environment variable with the name of the operator's
// OperatorCondition. OLM v0 sets the variable, creates the OperatorCondition, and gives the
// operator the rights to get and patch this OperatorCondition.
const operatorCondition = "OPERATOR_CONDITION_NAME"

// maxNamed bounds the number of Jobs in the message.
const maxNamed = 10

// HoldUpgrade returns a controller that lets OLM v0 wait with an upgrade of the operator
// while a pod of a Job runs whose controller is an object of the kind: the new version could
// replace the Job. The message of the condition Upgradeable names the Job. Without OLM v0,
// the controller does nothing. With OLM v0, one manager has all namespaces, because OLM sets
// WATCH_NAMESPACE as well. The operator needs the rights to list and watch Jobs.
func HoldUpgrade(kind client.Object) Controller { return &upgradeHold{kind: kind} }

type upgradeHold struct {
	kind      client.Object
	gvk       schema.GroupVersionKind
	condition types.NamespacedName // of the operator
	client    client.Client
	api       client.Reader // OLM gives no right to watch OperatorConditions
}

func (h *upgradeHold) Kind() client.Object { return nil }

func (h *upgradeHold) SetupWithManager(mgr ctrl.Manager) (err error) {
	h = &upgradeHold{kind: h.kind} // each manager has its own
	h.condition = types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(operatorCondition)}
	if h.condition.Name == "" {
		return nil
	}
	if h.gvk, err = apiutil.GVKForObject(h.kind, mgr.GetScheme()); err != nil {
		return err
	}
	h.client, h.api = mgr.GetClient(), mgr.GetAPIReader()
	request := reconcile.Request{NamespacedName: h.condition}
	return ctrl.NewControllerManagedBy(mgr).Named("upgrade").
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(request) // an earlier process may have set the condition
			return nil
		})).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{request}
		}), builder.WithPredicates(h.startOrEnd())).
		Complete(h)
}

// startOrEnd selects the events at which a Job starts or ends to hold the upgrade.
func (h *upgradeHold) startOrEnd() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return h.holds(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return h.holds(e.ObjectOld) != h.holds(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return h.holds(e.Object) },
	}
}

// holds tells whether a Job holds the upgrade. A Job whose pod waits, for example for its
// image, does not.
func (h *upgradeHold) holds(obj client.Object) bool {
	job, ok := obj.(*batchv1.Job)
	if !ok || job.Status.Ready == nil || *job.Status.Ready == 0 || ended(job) {
		return false
	}
	owner := metav1.GetControllerOf(job)
	return owner != nil && owner.Kind == h.gvk.Kind && strings.HasPrefix(owner.APIVersion, h.gvk.Group+"/")
}

func ended(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// Reconcile sets the condition Upgradeable.
func (h *upgradeHold) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var jobs batchv1.JobList
	if err := h.client.List(ctx, &jobs); err != nil {
		return reconcile.Result{}, err
	}
	current := &operatorsv2.OperatorCondition{}
	if err := h.api.Get(ctx, h.condition, current); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the OperatorCondition that %s names: %w", operatorCondition, err)
	}
	changed := current.DeepCopy()
	if !meta.SetStatusCondition(&changed.Spec.Conditions, h.upgradeable(jobs.Items)) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, h.client.Patch(ctx, changed, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
}

func (h *upgradeHold) upgradeable(jobs []batchv1.Job) metav1.Condition {
	var running []string
	for i := range jobs {
		if job := &jobs[i]; h.holds(job) {
			running = append(running, fmt.Sprintf("Job %s of %s %s", client.ObjectKeyFromObject(job), h.gvk.Kind, metav1.GetControllerOf(job).Name))
		}
	}
	if len(running) == 0 {
		return metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: "NoJobRuns"}
	}
	slices.Sort(running)
	message := "the upgrade waits until these Jobs end: " + strings.Join(running[:min(len(running), maxNamed)], ", ")
	if len(running) > maxNamed {
		message += fmt.Sprintf(" and %d more", len(running)-maxNamed)
	}
	return metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "JobRuns", Message: message}
}
