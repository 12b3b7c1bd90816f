package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// fence stands between an operator and the API server: it lets a number of
// writes pass, and of the last one the answer is lost.
type fence struct {
	mu      sync.Mutex
	left    int
	crash   bool // nothing gets through afterwards
	reached chan struct{}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f *fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		parsed, counted := enginetest.ParseRequest(request)
		if !counted || !parsed.Writes() {
			if f.closed() {
				return nil, fmt.Errorf("the operator is dead")
			}
			return next.RoundTrip(request)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.left == 0 && f.crash {
			return nil, fmt.Errorf("the operator is dead")
		}
		response, err := next.RoundTrip(request)
		if f.left--; f.left != 0 || err != nil {
			return response, err
		}
		close(f.reached)
		_ = response.Body.Close()
		return nil, fmt.Errorf("connection reset by peer")
	})
}

func (f *fence) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left == 0 && f.crash
}

// TestEveryWriteMayBeTheLast kills the operator after each of its writes, or
// only loses the answer: the end is the same, no password changes, and every
// Job is created once.
func TestEveryWriteMayBeTheLast(t *testing.T) {
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	reference := newDeployment(t)
	reference.run(nil)
	writes := len(reference.operator.Requests.Writes())
	reference.judge(nil)
	t.Logf("%d writes until everything is ready", writes)
	for _, crash := range []bool{true, false} {
		for n := 1; n <= writes; n++ {
			t.Run(fmt.Sprintf("crash=%t/%d", crash, n), func(t *testing.T) {
				t.Parallel()
				d := newDeployment(t)
				f := &fence{left: n, crash: crash, reached: make(chan struct{})}
				d.run(f)
				d.judge(reference)
			})
		}
	}
}

// deployment of one widget that has everything.
type deployment struct {
	*world
	cr        *widget.Widget
	mu        sync.Mutex
	passwords []string // that the outside has been told
	jobs      int
	end       []string
}

func newDeployment(t *testing.T) *deployment {
	d := &deployment{world: newWorld(t, t, mutant{}, patience)}
	d.needed()
	enginetest.Kubelet{}.Start(t, d.namespace)
	d.cr = &widget.Widget{ObjectMeta: metaOf(d.namespace, "crash"), Spec: widget.Spec{SecretName: "needed", Replicas: new(int32(1))}}
	return d
}

// register remembers the password, as a server outside would.
func (d *deployment) register(_ context.Context, cr *widget.Widget, in engine.Inputs) (engine.Observed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	password := string(in.Secret(cr.Name + "-credentials")["password"])
	if !slices.Contains(d.passwords, password) {
		d.passwords = append(d.passwords, password)
	}
	return engine.Observed{"account": "made"}, nil
}

// run the operator until the widget is ready; it meets the fence on the way.
func (d *deployment) run(f *fence) {
	d.t.Helper()
	if f != nil {
		d.mutant.options = []enginetest.Option{func(config *rest.Config, _ *ctrl.Options) { config.Wrap(f.wrap) }}
	}
	start(d.world, everything(d.register))
	d.create(d.cr)
	if f != nil && d.meets(f) && f.crash {
		d.operator.Stop()
		d.count()
		d.mutant.options = nil
		start(d.world, everything(d.register))
	}
	d.awaitReady(d.cr)
	d.pass(d.cr)
	d.count()
}

// meets says whether the operator came to the fence before it was ready: how
// often the status is written depends on how fast others are.
func (d *deployment) meets(f *fence) (met bool) {
	d.t.Helper()
	d.Eventually(func() bool {
		select {
		case <-f.reached:
			met = true
		default:
		}
		return met || strings.HasPrefix(d.condition(d.cr, "Ready")(), "True")
	}).Should(BeTrue())
	return met
}

// count the Jobs that this operator has created, and what there is at the end.
func (d *deployment) count() {
	for _, request := range d.operator.Requests.Of("apply", "jobs") {
		if request.Status == http.StatusCreated {
			d.jobs++
		}
	}
	d.end = nil
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}, &batchv1.JobList{}} {
		d.must(d.client.List(d.ctx, list, client.InNamespace(d.namespace), client.MatchingLabels{"asterism.dev/owner-uid": string(d.cr.UID)}))
		d.end = append(d.end, names(list)...)
	}
}

func (d *deployment) judge(reference *deployment) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	stored := d.secret(d.cr.Name + "-credentials")
	d.must(d.get(stored))
	d.Expect(d.passwords).To(Equal([]string{string(stored.Data["password"])}), "passwords that the outside was told")
	d.Expect(d.jobs).To(Equal(1), "Jobs created")
	if reference != nil {
		d.Expect(d.end).To(Equal(reference.end), "children at the end")
	}
}
