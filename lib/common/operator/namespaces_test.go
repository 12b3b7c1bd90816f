package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
	"asterism.dev/lib/common/operator"
)

// handOver runs an operator that has only the rights of its ServiceAccount.
type handOver struct {
	Gomega
	ctx      context.Context
	client   client.Client
	config   *rest.Config // of the account
	account  client.ObjectKey
	released atomic.Bool // the teardown of widgets succeeds
	widgets  []*widget.Widget
	mu       sync.Mutex
	asked    map[string]int // requests for widgets, by namespace; "" is all
	works    map[string]int // calls of Do, by namespace
	broken   string         // the namespace whose manager fails when it starts
}

// breaks is a controller that fails in the broken namespace.
type breaks struct{ *handOver }

func (b breaks) Kind() client.Object { return nil }

func (b breaks) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		b.mu.Lock()
		broken := b.broken
		b.mu.Unlock()
		var here widget.WidgetList
		if err := mgr.GetClient().List(ctx, &here); err != nil {
			return err
		}
		if len(here.Items) > 0 && here.Items[0].Namespace == broken {
			return errors.New("broken")
		}
		<-ctx.Done()
		return nil
	}))
}

func (h *handOver) breakIn(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = namespace
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (h *handOver) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if parsed, ok := enginetest.ParseRequest(request); ok && parsed.Resource == "widgets" {
			h.mu.Lock()
			h.asked[parsed.Namespace]++
			h.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// namespaces returns the namespaces whose widgets the operator has asked for so far.
func (h *handOver) namespaces() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.asked))
}

func newHandOver(t *testing.T) *handOver {
	t.Helper()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	h := &handOver{Gomega: NewWithT(t), ctx: t.Context(), client: enginetest.Client(t, widget.AddToScheme), asked: map[string]int{}, works: map[string]int{}}
	h.SetDefaultEventuallyTimeout(2 * time.Minute) // a failed teardown is repeated later and later
	own := enginetest.Namespace(t)
	h.account = client.ObjectKey{Namespace: own, Name: own + "-operator"}
	h.createRoles(t)

	t.Setenv("POD_NAMESPACE", h.account.Namespace)
	t.Setenv("POD_SERVICE_ACCOUNT", h.account.Name)
	config := enginetest.Config(t)
	h.config = config
	config.Impersonate.UserName = "system:serviceaccount:" + h.account.Namespace + ":" + h.account.Name
	config.Wrap(h.record)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx, config, widget.AddToScheme, h.service(), breaks{h}) }()
	t.Cleanup(func() {
		h.ctx = context.WithoutCancel(h.ctx)
		h.released.Store(true)
		for _, cr := range h.widgets {
			_ = h.client.Delete(h.ctx, cr)
			h.Eventually(h.gone(cr)).Should(BeTrue())
		}
		stop()
		h.Expect(<-ended).To(Succeed())
	})
	return h
}

func (h *handOver) service() engine.Service[*widget.Widget] {
	return engine.Service[*widget.Widget]{
		Name: "hand-over",
		Stages: []engine.Stage[*widget.Widget]{{Condition: "Made", Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.works[cr.Namespace]++
			return nil, nil
		}}},
		Teardown: []engine.Stage[*widget.Widget]{{Condition: "Undone", Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			if !h.released.Load() {
				return nil, errors.New("in use")
			}
			return nil, engine.Abandon("account w3 at db.example")
		}}},
	}
}

// createRoles creates the roles of an installation, which are bound in namespaces, and the
// roles that are bound in the whole cluster.
func (h *handOver) createRoles(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.account.Name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}}
	everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.account.Name + "-namespaces"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, ResourceNames: []string{h.account.Name}, Verbs: []string{"list", "watch", "patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: everywhere.Name}, Subjects: h.binding("", h.account.Name, h.account.Namespace).Subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere.Name},
	}
	events := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: h.account.Namespace, Name: "events"}, Rules: role.Rules[1:]}
	leader := h.binding(h.account.Namespace, events.Name, h.account.Namespace)
	leader.Name, leader.RoleRef.Kind = events.Name, "Role"
	for _, obj := range []client.Object{role, everywhere, binding, events, leader} {
		h.Expect(h.client.Create(h.ctx, obj)).To(Succeed())
		t.Cleanup(func() { _ = h.client.Delete(context.WithoutCancel(h.ctx), obj) })
	}
}

func (h *handOver) binding(namespace, role, subject string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: h.account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: subject, Name: h.account.Name}},
	}
}

func (h *handOver) handOver(namespace string) *rbacv1.RoleBinding {
	binding := h.binding(namespace, h.account.Name, h.account.Namespace)
	h.Expect(h.client.Create(h.ctx, binding)).To(Succeed())
	return binding
}

// serves hands another namespace over, and waits until the operator serves it. Then the operator
// knows all older RoleBindings, and has asked for the widgets of each namespace that it watches.
func (h *handOver) serves(t *testing.T) (namespace string) {
	t.Helper()
	namespace = enginetest.Namespace(t)
	cr := h.widget(namespace)
	h.handOver(namespace)
	h.Eventually(h.reconciled(cr)).Should(BeTrue(), "a namespace that is handed over later is served")
	return namespace
}

// tidies creates a RoleBinding with a finalizer that it needs no longer, and waits until the
// operator has removed the finalizer. The operator processes one RoleBinding at a time, and so
// has processed all older changes before.
func (h *handOver) tidies(t *testing.T) {
	t.Helper()
	binding := h.binding(enginetest.Namespace(t), "view", h.account.Namespace)
	binding.Finalizers = []string{"in-use.asterism.dev/" + h.account.Namespace}
	h.Expect(h.client.Create(h.ctx, binding)).To(Succeed())
	h.Eventually(h.finalizers(binding)).Should(BeEmpty(), "a finalizer that is no longer needed is removed")
}

func (h *handOver) widget(namespace string) *widget.Widget {
	cr := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widget"}}
	h.Expect(h.client.Create(h.ctx, cr)).To(Succeed())
	h.widgets = append(h.widgets, cr.DeepCopy())
	return cr
}

// reconciled tells whether the operator has reconciled a widget.
func (h *handOver) reconciled(cr *widget.Widget) func() (bool, error) {
	return func() (bool, error) {
		err := h.client.Get(h.ctx, client.ObjectKeyFromObject(cr), cr)
		return len(cr.Status.Conditions) > 0, err
	}
}

func (h *handOver) finalizers(obj client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		err := h.client.Get(h.ctx, client.ObjectKeyFromObject(obj), obj)
		return obj.GetFinalizers(), err
	}
}

func (h *handOver) gone(obj client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(h.client.Get(h.ctx, client.ObjectKeyFromObject(obj), obj)) }
}

// TestNamespacesAreHandedOver: a RoleBinding hands a namespace over while the operator
// runs, and its deletion takes the namespace back.
func TestNamespacesAreHandedOver(t *testing.T) {
	h := newHandOver(t)
	first, second := enginetest.Namespace(t), enginetest.Namespace(t)
	one, other := h.widget(first), h.widget(second)
	h.tidies(t)
	h.Expect(h.reconciled(one)()).To(BeFalse(), "no namespace is handed over")
	h.Expect(h.namespaces()).To(BeEmpty(), "no namespace is handed over")

	binding := h.handOver(first)
	h.Eventually(h.reconciled(one)).Should(BeTrue())
	h.Expect(h.reconciled(other)()).To(BeFalse(), "only the other namespace is handed over")
	h.Expect(h.namespaces()).To(ConsistOf(first), "only this namespace is handed over")
	h.handOver(second)
	h.Eventually(h.reconciled(other)).Should(BeTrue())

	h.Eventually(h.finalizers(binding)).Should(ConsistOf("in-use.asterism.dev/" + h.account.Namespace))
	h.released.Store(true)
	h.Expect(h.client.Delete(h.ctx, one)).To(Succeed())
	h.Eventually(h.finalizers(binding)).Should(BeEmpty(), "no object needs the operator for its deletion")
	h.Expect(h.client.Delete(h.ctx, binding)).To(Succeed())
	h.Expect(h.gone(binding)()).To(BeTrue())
	h.Eventually(h.mayWatch(first)).Should(BeFalse()) // the API server caches RoleBindings for a short time
	late := h.widget(first)
	h.serves(t)
	h.Expect(h.reconciled(late)()).To(BeFalse(), "the namespace is taken back")
	h.Expect(h.client.Delete(h.ctx, other)).To(Succeed())
	h.Eventually(h.gone(other)).Should(BeTrue(), "the other namespace is still watched")
}

// TestAHandOverDisturbsNoOtherNamespace: neither its requests nor its work are repeated.
func TestAHandOverDisturbsNoOtherNamespace(t *testing.T) {
	h := newHandOver(t)
	quiet := h.serves(t)
	h.serves(t) // then the watches in the first namespace have begun
	requests, works := h.settled(quiet)
	h.Expect(works).To(Equal(1))
	taken := h.handOver(enginetest.Namespace(t))
	h.Eventually(h.namespaces).Should(ContainElement(taken.Namespace))
	h.Expect(h.client.Delete(h.ctx, taken)).To(Succeed())
	h.Eventually(h.gone(taken)).Should(BeTrue())
	h.serves(t)
	requestsNow, worksNow := h.requests(quiet)
	h.Expect(requestsNow).To(Equal(requests), "requests for widgets of a namespace while others are handed over")
	h.Expect(worksNow).To(Equal(works), "calls of Do in a namespace while others are handed over")
}

// TestANamespaceTakesLittleMemory: docs/limits.md states half a MiB.
func TestANamespaceTakesLittleMemory(t *testing.T) {
	const namespaces, limit = 20, 512 << 10 // half of it without the race detector
	h := newHandOver(t)
	h.serves(t)
	before := memory()
	for i := range namespaces {
		name := fmt.Sprintf("%s-%d", h.account.Namespace, i)
		h.Expect(h.client.Create(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		t.Cleanup(func() {
			_ = h.client.Delete(context.WithoutCancel(h.ctx), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
		h.handOver(name)
	}
	h.Eventually(h.namespaces).Should(HaveLen(namespaces + 1))
	h.serves(t)
	h.Expect((memory()-before)/namespaces).To(And(BeNumerically(">", 0), BeNumerically("<", limit)), "bytes for each namespace")
}

// memory returns the bytes of the heap and of the stacks of this process.
func memory() int {
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // far below the largest int
}

// TestANamespaceThatFailsDisturbsNoOther: it is counted, and tried again.
func TestANamespaceThatFailsDisturbsNoOther(t *testing.T) {
	h := newHandOver(t)
	quiet := h.serves(t)
	h.serves(t) // then the watches in the first namespace have begun
	requests, works := h.settled(quiet)
	fails := h.widget(enginetest.Namespace(t))
	h.breakIn(fails.Namespace)
	h.handOver(fails.Namespace)
	failures := func() float64 { return failuresIn(t, fails.Namespace) }
	h.Eventually(failures).Should(BeNumerically(">=", 2))
	h.serves(t)
	requestsNow, worksNow := h.requests(quiet)
	h.Expect([]int{requestsNow, worksNow}).To(Equal([]int{requests, works}), "requests and calls of Do in another namespace")

	h.breakIn("")
	h.released.Store(true)
	h.Expect(h.client.Delete(h.ctx, fails)).To(Succeed())
	h.Eventually(h.gone(fails)).Should(BeTrue(), "the namespace is tried again")
}

// failuresIn returns the metric of the failures of a namespace's manager.
func failuresIn(t *testing.T, namespace string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if family.GetName() == "asterism_namespace_failures_total" && one.GetLabel()[0].GetValue() == namespace {
				return one.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// requests returns the number of requests for widgets of a namespace, and of calls of Do.
func (h *handOver) requests(namespace string) (requests, works int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[namespace], h.works[namespace]
}

// settled returns the requests when no more follow: while a watch does not show the operator's own
// last write, each pass reads the widget.
func (h *handOver) settled(namespace string) (requests, works int) {
	h.Eventually(func() bool {
		before := requests
		requests, works = h.requests(namespace)
		return requests == before
	}).WithPolling(10 * time.Second).Should(BeTrue()) // longer than a slow machine pauses
	return requests, works
}

// mayWatch tells whether the operator's account has its rights in a namespace.
func (h *handOver) mayWatch(namespace string) func() (bool, error) {
	return func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + h.account.Namespace + ":" + h.account.Name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: widget.GroupVersion.Group, Resource: "widgets", Verb: "watch"},
		}}
		err := h.client.Create(h.ctx, review)
		return review.Status.Allowed, err
	}
}

// TestRightsStayUntilObjectsAreDeleted: the order in which objects of a namespace are
// deleted does not matter. The operator keeps its rights until its objects are deleted, and
// lists abandoned objects in an event in its own namespace.
func TestRightsStayUntilObjectsAreDeleted(t *testing.T) {
	h := newHandOver(t)
	name := enginetest.Namespace(t)
	cr, binding := h.widget(name), h.handOver(name)
	h.Eventually(h.reconciled(cr)).Should(BeTrue())
	h.Eventually(h.finalizers(binding)).ShouldNot(BeEmpty())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.Expect(h.client.Delete(h.ctx, binding)).To(Succeed())
	h.Expect(h.client.Delete(h.ctx, namespace)).To(Succeed())
	h.tidies(t)
	h.Expect(h.gone(binding)()).To(BeFalse(), "the operator needs its rights for the widget")
	h.released.Store(true)
	h.Eventually(h.gone(cr)).Should(BeTrue())
	h.Eventually(h.gone(namespace)).WithTimeout(5 * time.Minute).Should(BeTrue()) // after those of other tests
	h.Eventually(h.leftBehind).Should(ConsistOf("Widget " + name + "/widget: Undone: account w3 at db.example"))
}

// leftBehind returns the messages of the events LeftBehind in the operator's namespace.
func (h *handOver) leftBehind() (left []string, err error) {
	var events corev1.EventList
	err = h.client.List(h.ctx, &events, client.InNamespace(h.account.Namespace))
	for _, event := range events.Items {
		if event.Reason == "LeftBehind" {
			left = append(left, event.Message)
		}
	}
	return left, err
}

// TestHandOverNeedsTheRights: a user can create a RoleBinding with the operator's name in a
// namespace. The RoleBinding counts only if it gives the operator's rights to the operator,
// and Kubernetes allows that only to a user with these rights. An operator that watched a
// namespace without rights could not watch any other namespace either.
func TestHandOverNeedsTheRights(t *testing.T) {
	h := newHandOver(t)
	bindings := map[string]*rbacv1.RoleBinding{
		"another role":    h.binding(enginetest.Namespace(t), "view", h.account.Namespace),
		"another subject": h.binding(enginetest.Namespace(t), h.account.Name, "elsewhere"),
	}
	widgets := map[string]*widget.Widget{}
	for name, binding := range bindings {
		widgets[name] = h.widget(binding.Namespace)
		h.Expect(h.client.Create(h.ctx, binding)).To(Succeed())
	}
	foreign := h.binding(enginetest.Namespace(t), h.account.Name, "elsewhere")
	foreign.Finalizers = []string{"in-use.asterism.dev/elsewhere"}
	h.Expect(h.client.Create(h.ctx, foreign)).To(Succeed())

	served := h.serves(t)
	h.Expect(h.namespaces()).To(ConsistOf(served), "the operator still works, in no other namespace")
	h.tidies(t)
	for name, binding := range bindings {
		h.Expect(h.reconciled(widgets[name])()).To(BeFalse(), name)
		h.Expect(h.finalizers(binding)()).To(BeEmpty(), name)
	}
	h.Expect(h.finalizers(foreign)()).To(ConsistOf("in-use.asterism.dev/elsewhere"), "the finalizer of another installation stays")
	foreign.Finalizers = nil
	h.Expect(h.client.Update(h.ctx, foreign)).To(Succeed())
}

// limitedClient notes the limit of the last list.
type limitedClient struct {
	client.Client
	limit int64
}

func (c *limitedClient) Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = widget.AddToScheme(scheme)
	return scheme
}

func (c *limitedClient) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	c.limit = (&client.ListOptions{}).ApplyOptions(opts).Limit
	return nil
}

// TestOneObjectShowsThatANamespaceIsInUse: every event of an object asks for it, and the cache
// copies what it lists.
func TestOneObjectShowsThatANamespaceIsInUse(t *testing.T) {
	g := NewWithT(t)
	c := &limitedClient{}
	used, err := operator.InUse(t.Context(), c, "n", engine.Service[*widget.Widget]{Name: "widget"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(used).To(BeFalse())
	g.Expect(c.limit).To(BeEquivalentTo(1))
}
