package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// contract is a guarantee of the engine: a check, and mutants, which are engines with a
// deliberate fault for which the same check must fail.
type contract struct {
	check   func(w *world)
	mutants map[string]mutant
}

// mutant is one fault.
type mutant struct {
	seam    func(*engine.Seam)
	options []enginetest.Option
	// caught matches the expected failure of the check, so that another failure does not
	// count. If hangs is true, it matches what does not happen, see happens.
	caught string
	// hangs is true if the fault shows only in what happens never, see happens.
	hangs bool
}

func (c contract) test(t *testing.T) {
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	t.Run("holds", func(t *testing.T) {
		t.Parallel()
		c.check(newWorld(t, t, mutant{}))
	})
	for name, m := range c.mutants {
		t.Run("catches "+name, func(t *testing.T) {
			t.Parallel()
			var healthy map[string]time.Duration
			if m.hangs {
				w := newWorld(t, t, mutant{})
				c.check(w)
				w.operator.Stop()
				healthy = w.took
			}
			failure := failureOf(t, func(t *probe) {
				w := newWorld(t.TB, t, m)
				w.healthy = healthy
				c.check(w)
			})
			switch {
			case failure == "":
				t.Fatalf("the check holds for an engine that %s", name)
			case strings.Contains(failure, "Timed out after") && !m.hangs:
				t.Fatalf("the check ran out of time, which also happens on a slow machine; want %q, got: %s", m.caught, failure)
			case !regexp.MustCompile(m.caught).MatchString(failure):
				t.Fatalf("the check fails for another reason than the fault; want %q, got: %s", m.caught, failure)
			}
		})
	}
}

// probe is a test whose failure is expected.
type probe struct {
	testing.TB
}

type failed string

func (p *probe) Helper() {}

func (p *probe) Fatalf(format string, args ...any) {
	panic(failed(fmt.Sprintf(format, args...))) //nolint:forbidigo // ends the check, as FailNow would
}

func failureOf(t *testing.T, run func(*probe)) (failure string) {
	t.Helper()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failed:
			failure = string(r)
		default:
			panic(r) //nolint:forbidigo // not a failure of the check
		}
	}()
	run(&probe{t})
	return ""
}

// world is a namespace with a running engine, which watches another namespace as well, behind a
// proxy.
type world struct {
	Gomega
	t         testing.TB // for cleanup
	ctx       context.Context
	namespace string
	client    client.Client
	mutant    mutant
	proxy     proxy
	beside    []enginetest.Runnable // further controllers of the operator
	watched   *watched
	operator  *enginetest.Operator
	took      map[string]time.Duration // longest duration of what happens has awaited
	healthy   map[string]time.Duration // took of a healthy engine; nil for a healthy engine
}

// patience is the timeout of all checks, because the machine may be slow.
const patience = 4 * time.Minute

// decides waits until actual is right, and fails when it is wrong: only a fault explains that,
// and a slow machine does not.
func (w *world) decides(actual func() string, right, wrong gomegatypes.GomegaMatcher, what string) {
	w.t.Helper()
	var last string
	w.Eventually(func() string { last = actual(); return last }).Should(Or(right, wrong), what)
	w.Expect(last).To(right, what)
}

// happens waits for what a fault can prevent. An engine that does nothing gives no proof of the
// fault. So a mutant gets ten times as long as a healthy engine has needed just before, but only
// for what its own fault prevents: the machine may be slower by now.
func (w *world) happens(what string, actual func() string, expected gomegatypes.GomegaMatcher) {
	w.t.Helper()
	timeout := patience
	if w.healthy != nil && regexp.MustCompile(w.mutant.caught).MatchString(what) {
		timeout = max(5*time.Second, 10*w.healthy[what])
	}
	began := time.Now()
	w.Eventually(actual).WithTimeout(timeout).Should(expected, what)
	w.took[what] = max(w.took[what], time.Since(began))
}

// sees waits until the engine has read the present version of an object, which includes its own
// last write.
func (w *world) sees(obj client.Object) {
	w.t.Helper()
	w.Eventually(func() string {
		w.must(w.get(obj)) // again: controllers of Kubernetes may write as well
		return w.watched.version(obj)
	}).Should(Satisfy(func(version string) bool { return version == obj.GetResourceVersion() }), "the engine reads the newest version of %s", obj.GetName())
}

// leaves tells whether the engine has read the present version of an object, and has not
// changed it in a complete pass.
func (w *world) leaves(cr *widget.Widget, obj client.Object) bool {
	w.t.Helper()
	w.must(w.get(obj))
	version := obj.GetResourceVersion()
	if w.watched.version(obj) != version {
		return false
	}
	w.pass(cr)
	w.must(w.get(obj))
	return obj.GetResourceVersion() == version
}

// readTimeout is the read timeout of engines in tests that wait for it.
const readTimeout = time.Second

func newWorld(t, judge testing.TB, m mutant) *world {
	t.Helper()
	g := NewWithT(judge)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	w := &world{
		Gomega: g, t: t, ctx: context.Background(), namespace: enginetest.Namespace(t),
		client: enginetest.Client(t, widget.AddToScheme), mutant: m, took: map[string]time.Duration{},
	}
	w.watched = &watched{scheme: w.client.Scheme(), passes: map[string]int{}, versions: map[string]string{}}
	t.Cleanup(w.clear)
	return w
}

// clear removes finalizers so that the namespace can be deleted: the operator has ended.
func (w *world) clear() {
	var widgets widget.WidgetList
	if err := w.client.List(w.ctx, &widgets, client.InNamespace(w.namespace)); err != nil {
		w.t.Errorf("listing widgets: %v", err)
	}
	w.release()
	for _, cr := range widgets.Items {
		volume := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(&cr))}
		if err := w.client.Delete(w.ctx, volume); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("deleting %s: %v", volume.Name, err)
		}
		if w.t.Failed() {
			w.t.Logf("widget %s: %s", cr.Name, enginetest.Conditions(&cr))
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.client.Patch(w.ctx, &cr, patch); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("removing the finalizers of %s: %v", cr.Name, err)
		}
	}
}

// release removes the finalizers of pods that a failed test has left.
func (w *world) release() {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	var pods corev1.PodList
	if err := w.client.List(w.ctx, &pods, client.InNamespace(w.namespace)); err != nil {
		w.t.Errorf("listing pods: %v", err)
	}
	for _, pod := range pods.Items {
		if err := w.client.Patch(w.ctx, &pod, patch); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("releasing pod %s: %v", pod.Name, err)
		}
	}
}

// seamed is a service with a changed engine.
type seamed[T engine.Object] struct {
	engine.Service[T]
	change func(*engine.Seam)
}

func (s seamed[T]) SetupWithManager(mgr ctrl.Manager) error { return s.Setup(mgr, s.change) }

// start runs a service; its changes are applied before the change of the mutant.
func start[T engine.Object](w *world, s engine.Service[T], changes ...func(*engine.Seam)) {
	w.t.Helper()
	change := func(seam *engine.Seam) {
		seam.DiscoveryRetry, seam.JobRetryMin, seam.RestoreEvery = 200*time.Millisecond, time.Second, time.Millisecond
		for _, c := range changes {
			c(seam)
		}
		seam.Cached = versionReader{seam.Cached, w.watched}
		if w.mutant.seam != nil {
			w.mutant.seam(seam)
		}
		seam.Cached = countingReader{seam.Cached, w.watched}
	}
	options := append([]enginetest.Option{alsoWatch(metav1.NamespacePublic), w.proxy.option}, w.mutant.options...)
	w.operator = enginetest.RunWith(w.t, w.namespace, enginetest.Scheme(w.t, widget.AddToScheme), options,
		append(w.beside, seamed[T]{Service: s, change: change})...)
}

// alsoWatch makes an operator watch a second namespace.
func alsoWatch(namespace string) enginetest.Option {
	return func(_ *rest.Config, options *ctrl.Options) {
		options.Cache.DefaultNamespaces[namespace] = cache.Config{}
	}
}

// as makes an operator a user with the rights of a Role, and therefore in one namespace only.
func (w *world) as(role *rbacv1.Role) {
	w.t.Helper()
	w.create(role)
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metaOf(w.namespace, role.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: role.Name}},
	})
	w.mutant.options = append(w.mutant.options, func(config *rest.Config, options *ctrl.Options) {
		config.Impersonate.UserName = role.Name
		delete(options.Cache.DefaultNamespaces, metav1.NamespacePublic)
	})
}

// proxy is between an engine and the API server. It delays lists and watches.
type proxy struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by resource
}

// hold delays the lists and watches of a resource until release is called.
func (p *proxy) hold(resource string) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	released := make(chan struct{})
	if p.held == nil {
		p.held = map[string]chan struct{}{}
	}
	p.held[resource] = released
	return sync.OnceFunc(func() { close(released) })
}

func (p *proxy) option(config *rest.Config, _ *ctrl.Options) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{next, p} })
}

type roundTripper struct {
	http.RoundTripper
	*proxy
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	parsed, _ := enginetest.ParseRequest(request)
	r.mu.Lock()
	released := r.held[parsed.Resource]
	r.mu.Unlock()
	if released != nil && (parsed.Verb == "list" || parsed.Verb == "watch") {
		select {
		case <-released:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return r.RoundTripper.RoundTrip(request)
}

// watched counts the passes over each object, which begin with reading it, and has the version
// of each object that was read last.
type watched struct {
	scheme   *runtime.Scheme
	mu       sync.Mutex
	passes   map[string]int
	versions map[string]string
}

type countingReader struct {
	client.Reader
	*watched
}

func (r countingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*widget.Widget); ok {
		r.mu.Lock()
		r.passes[key.Name]++
		r.mu.Unlock()
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// versionReader notes the versions before a fault of a mutant changes what is read.
type versionReader struct {
	client.Reader
	*watched
}

func (r versionReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if err == nil {
		r.mu.Lock()
		r.versions[r.keyOf(obj)] = obj.GetResourceVersion()
		r.mu.Unlock()
	}
	return err
}

func (w *watched) keyOf(obj client.Object) string {
	gvk, _ := apiutil.GVKForObject(obj, w.scheme)
	return gvk.Kind + " " + obj.GetName()
}

func (w *watched) version(obj client.Object) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[w.keyOf(obj)]
}

func (w *watched) of(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passes[name]
}

// pass starts passes over the widget, and returns after at least one complete pass.
func (w *world) pass(cr *widget.Widget) {
	w.t.Helper()
	// The first counted pass may have begun before. The second pass has not, and it is
	// complete when the third pass begins.
	for range 3 {
		before := w.watched.of(cr.Name)
		w.annotate(cr, "changed", fmt.Sprint(time.Now().UnixNano()))
		w.Eventually(func() int { return w.watched.of(cr.Name) }).Should(BeNumerically(">", before), "the widget is reconciled again")
	}
}

// annotate annotates an object as another client.
func (w *world) annotate(obj client.Object, key, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	w.must(w.client.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("other-client")))
}

func (w *world) must(err error) {
	w.t.Helper()
	w.Expect(err).NotTo(HaveOccurred())
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if obj.GetNamespace() == "" && !clusterScoped(obj) {
		obj.SetNamespace(w.namespace)
	}
	w.must(w.client.Create(w.ctx, obj, client.FieldOwner("other-client")))
}

func clusterScoped(obj client.Object) bool {
	switch obj.(type) {
	case *corev1.PersistentVolume, *corev1.Namespace:
		return true
	}
	return false
}

// widget creates a widget.
func (w *world) widget(name string, spec widget.Spec) *widget.Widget {
	w.t.Helper()
	cr := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	w.create(cr)
	return cr
}

// change changes the spec of a widget.
func (w *world) change(cr *widget.Widget, change func(*widget.Spec)) {
	w.t.Helper()
	w.must(w.get(cr))
	before := cr.DeepCopy()
	change(&cr.Spec)
	w.must(w.client.Patch(w.ctx, cr, client.MergeFrom(before), client.FieldOwner("other-client")))
}

func (w *world) get(obj client.Object) error {
	return w.client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj)
}

// secret returns an empty Secret to read into.
func (w *world) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// configMap returns an empty ConfigMap to read into.
func (w *world) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// textOf returns the key text of a ConfigMap; "" if the ConfigMap does not exist.
func (w *world) textOf(name string) func() string {
	return func() string {
		config := w.configMap(name)
		if w.get(config) != nil {
			return ""
		}
		return config.Data["text"]
	}
}

// gone tells whether the object does not exist.
func (w *world) gone(obj client.Object) bool {
	return errors.IsNotFound(w.get(obj))
}

// uid returns the UID of the object; "" if the object does not exist.
func (w *world) uid(obj client.Object) types.UID {
	if w.get(obj) != nil {
		return ""
	}
	return obj.GetUID()
}

// condition returns a condition for the object's newest generation: "True Complete: message".
func (w *world) condition(obj engine.Object, name string) func() string {
	return func() string {
		if err := w.get(obj); err != nil {
			return err.Error()
		}
		if obj.Common().ObservedGeneration != obj.GetGeneration() {
			return fmt.Sprintf("observedGeneration is %d, generation %d", obj.Common().ObservedGeneration, obj.GetGeneration())
		}
		found := meta.FindStatusCondition(obj.Common().Conditions, name)
		if found == nil {
			return "absent"
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message))
	}
}

func (w *world) awaitReady(objs ...engine.Object) {
	w.t.Helper()
	for _, obj := range objs {
		w.Eventually(w.condition(obj, "Ready")).Should(HavePrefix("True"), "%s is ready", obj.GetName())
	}
}

// text returns the fields of an object as text, to search in them.
func text(obj runtime.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(content)
}

// hooks are functions that run once, before the engine's next apply of an object.
type hooks struct {
	mu     sync.Mutex
	before map[string]func()
}

func (h *hooks) apply(name string, do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.before == nil {
		h.before = map[string]func(){}
	}
	h.before[name] = do
}

func (h *hooks) run(name string) {
	h.mu.Lock()
	do := h.before[name]
	delete(h.before, name)
	h.mu.Unlock()
	if do != nil {
		do()
	}
}

type hookedClient struct {
	client.Client
	*hooks
}

func (c hookedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.run(bodyOf(obj).GetName())
	return c.Client.Apply(ctx, obj, opts...)
}

// filteredCache delivers only some events.
type filteredCache struct {
	cache.Cache
	deliver func(any) bool
}

func (c filteredCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	return filteredInformer{informer, c.deliver}, err
}

type filteredInformer struct {
	cache.Informer
	deliver func(any) bool
}

func (i filteredInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(toolscache.FilteringResourceEventHandler{Handler: handler, FilterFunc: i.deliver}, options)
}

func (i filteredInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(toolscache.FilteringResourceEventHandler{Handler: handler, FilterFunc: i.deliver})
}
