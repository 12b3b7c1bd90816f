package operator

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// syncTimeout is less than the time after which the kubelet restarts an operator that
	// does not answer its probe.
	syncTimeout = 30 * time.Second
	// restartMin and restartMax bound the time until a manager that has failed is started
	// again.
	restartMin, restartMax = time.Second, time.Minute
)

// handOver finds the namespaces that are handed over to an operator. Each of them has a
// RoleBinding with the name of the operator's ServiceAccount, which gives to this account
// the ClusterRole of the same name.
type handOver struct {
	account types.NamespacedName
	// bindings has every RoleBinding of that name. It runs until the process ends.
	bindings cache.Cache
	uses     uses
}

// newHandOver starts the watch of the RoleBindings for the operator's ServiceAccount. Each is
// looked at again after the time syncPeriod; nil: 10 hours.
func newHandOver(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, syncPeriod *time.Duration) (*handOver, error) {
	account := types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(podServiceAccount)}
	if account.Namespace == "" || account.Name == "" {
		return nil, fmt.Errorf("environment variable %s is not set, and %s or %s is empty: set %s to the namespaces to watch, separated by commas, or to the empty string to watch all",
			watchNamespace, podNamespace, podServiceAccount, watchNamespace)
	}
	bindings, err := cache.New(config, cache.Options{Scheme: scheme, SyncPeriod: syncPeriod, ByObject: map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}: {Field: fields.OneTermEqualSelector("metadata.name", account.Name)},
	}})
	if err != nil {
		return nil, err
	}
	if _, err := bindings.GetInformer(ctx, &rbacv1.RoleBinding{}); err != nil {
		return nil, err
	}
	go func() { _ = bindings.Start(ctx) }() // fails only if it was started before
	wait, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !bindings.WaitForCacheSync(wait) && ctx.Err() == nil {
		return nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over, took more than %s: check that the operator has the rights to list and watch them", account.Name, syncTimeout)
	}
	return &handOver{account: account, bindings: bindings, uses: uses{known: map[string]*use{}}}, nil
}

// matches tells whether a RoleBinding hands its namespace over.
func (h *handOver) matches(binding *rbacv1.RoleBinding) bool {
	return binding.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.account.Name} &&
		slices.Contains(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.account.Namespace, Name: h.account.Name})
}

// namespaces returns the namespaces that are handed over now, and the other namespaces with
// a RoleBinding of this name.
func (h *handOver) namespaces(ctx context.Context) (handedOver, others sets.Set[string], err error) {
	var all rbacv1.RoleBindingList
	if err := h.bindings.List(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over: %w", h.account.Name, err)
	}
	handedOver, others = sets.New[string](), sets.New[string]()
	for i := range all.Items {
		if h.matches(&all.Items[i]) {
			handedOver.Insert(all.Items[i].Namespace)
		} else {
			others.Insert(all.Items[i].Namespace)
		}
	}
	return handedOver, others, nil
}

// follow calls see for every RoleBinding, and for its changes until the context ends.
func (h *handOver) follow(ctx context.Context, see func(*rbacv1.RoleBinding)) error {
	informer, err := h.bindings.GetInformer(ctx, &rbacv1.RoleBinding{})
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { see(bindingOf(obj)) },
		UpdateFunc: func(_, obj any) { see(bindingOf(obj)) },
		DeleteFunc: func(obj any) { see(bindingOf(obj)) },
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) })
	return nil
}

// bindingOf returns the RoleBinding of an event; for a missed deletion, the last known
// version.
func bindingOf(obj any) *rbacv1.RoleBinding {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	binding, _ := obj.(*rbacv1.RoleBinding)
	return binding
}

// run runs the controllers until the context ends. Each namespace that is handed over has a
// manager of its own: no change of one namespace disturbs another one, and a kind is watched
// only where it is used. One more manager leads, serves probes and metrics, and has no watches.
func (h *handOver) run(ctx context.Context, config *rest.Config, options ctrl.Options, controllers []Controller) error {
	return runManager(ctx, config, options, []Controller{
		&rights{handOver: h},
		&tenants{handOver: h, config: config, options: options, controllers: controllers},
	})
}

// tenants runs the managers of the namespaces, once the operator leads.
type tenants struct {
	*handOver
	config      *rest.Config
	options     ctrl.Options
	controllers []Controller
	running     map[string]*tenant
	refused     sets.Set[string] // namespaces with a RoleBinding that does not hand them over
	many        bool             // more than manyNamespaces are handed over
}

// manyNamespaces is the number of namespaces from which on an operator of all namespaces needs
// less memory: see docs/limits.md, which has the same number.
const manyNamespaces = 500

// tenantWorkers is the number of concurrent passes over objects of one kind in one namespace.
// Idle workers take memory, 4 KiB each.
const tenantWorkers = 8

// namespaceFailures counts the managers that have failed. Their objects have no conditions in the
// metrics meanwhile.
var namespaceFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "asterism_namespace_failures_total", Help: "Number of times that the controllers of a namespace failed and were restarted.",
}, []string{"namespace"})

func init() { metrics.Registry.MustRegister(namespaceFailures) }

// tenant is the manager of one namespace.
type tenant struct {
	stop  context.CancelFunc
	ended chan struct{} // closed
}

func (t *tenant) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

func (t *tenants) Kind() client.Object { return nil }

func (t *tenants) SetupWithManager(mgr ctrl.Manager) error {
	t.running = map[string]*tenant{}
	t.options.LeaderElection, t.options.LeaderElectionResourceLockInterface = false, nil
	t.options.Controller.MaxConcurrentReconciles = tenantWorkers
	t.options.Metrics.BindAddress, t.options.HealthProbeBindAddress = "0", "0"
	t.options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
	return mgr.Add(t)
}

// Start follows the RoleBindings until the context ends, and then returns when every manager
// has ended.
func (t *tenants) Start(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	err := t.follow(ctx, func(*rbacv1.RoleBinding) {
		select {
		case changed <- struct{}{}:
		default: // the coming update sees this change as well
		}
	})
	for err == nil {
		select {
		case <-changed:
			err = t.update(ctx)
		case <-ctx.Done():
			for _, tenant := range t.running {
				<-tenant.ended
			}
			return nil
		}
	}
	return err
}

// update starts and stops managers.
func (t *tenants) update(ctx context.Context) error {
	watched, others, err := t.namespaces(ctx)
	if err != nil {
		return err
	}
	for name := range others.Difference(t.refused) {
		ctrl.Log.Info("a RoleBinding with the operator's name does not hand its namespace over: it gives another role, or gives it to another account", "namespace", name)
	}
	t.refused = others
	if advice := t.advise(len(watched)); advice != "" {
		ctrl.Log.Info(advice, "namespaces", len(watched))
	}
	for name, tenant := range t.running {
		if watched.Has(name) {
			continue
		}
		if tenant.stop != nil {
			ctrl.Log.Info("a namespace is taken back", "namespace", name)
			tenant.stop()
			tenant.stop = nil
		}
		if tenant.hasEnded() {
			delete(t.running, name)
		}
	}
	for name := range watched {
		before := t.running[name]
		if before == nil || before.stop == nil {
			ctrl.Log.Info("a namespace is handed over", "namespace", name)
			t.running[name] = t.start(ctx, name, before)
		}
	}
	return nil
}

// advise returns a text when the number of namespaces has become larger than manyNamespaces.
func (t *tenants) advise(watched int) (advice string) {
	if watched > manyNamespaces && !t.many {
		advice = "each namespace takes up to half a MiB of memory: for so many, install the operator for all namespaces"
	}
	t.many = watched > manyNamespaces
	return advice
}

// start starts the manager of a namespace, after the end of the one before it.
func (t *tenants) start(ctx context.Context, namespace string, before *tenant) *tenant {
	ctx, cancel := context.WithCancel(ctx)
	started := &tenant{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(started.ended)
		if before != nil {
			<-before.ended
		}
		newPause := wait.Backoff{Duration: restartMin, Factor: 2, Cap: restartMax, Steps: math.MaxInt}
		pause := newPause
		for ctx.Err() == nil {
			began := time.Now()
			if err := t.runIn(ctx, namespace); err != nil {
				namespaceFailures.WithLabelValues(namespace).Inc()
				ctrl.Log.Error(err, "the controllers of a namespace have failed", "namespace", namespace)
			}
			if time.Since(began) > restartMax {
				pause = newPause
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause.Step()):
			}
		}
	}()
	return started
}

// runIn runs the controllers of one namespace until the context ends or one fails.
func (t *tenants) runIn(ctx context.Context, namespace string) error {
	options := t.options
	options.Cache.DefaultNamespaces = watch(namespace)
	controllers := append([]Controller{&use{handOver: t.handOver, namespace: namespace, kinds: t.controllers}}, t.controllers...)
	return runManager(ctx, t.config, options, controllers)
}
