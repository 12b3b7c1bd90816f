package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// statuses is the number of statuses that every deployment writes: it stops while its Job runs
// and while its pods start, and at the end. The number of further statuses depends on the speed
// of other controllers.
const statuses = 3

// TestEveryWriteMayBeTheLast kills the operator after each of its writes, or only drops the
// answer. Each time, the final objects are the same, no password changes, and every Job is
// created once.
func TestEveryWriteMayBeTheLast(t *testing.T) {
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	reference := newDeployment(t)
	reference.run(nil)
	reference.judge(nil)
	isStatus := func(r enginetest.Request) bool { return r.Subresource == "status" }
	isOther := func(r enginetest.Request) bool { return !isStatus(r) }
	others := slices.DeleteFunc(reference.operator.Requests.Writes(), func(r enginetest.Request) bool {
		return isStatus(r) || r.Status == 0 || r.Status >= http.StatusBadRequest // which a faster machine does not need
	})
	t.Logf("%d writes, without those of the status: %v", len(others), others)
	reference.Expect(len(others)).To(BeNumerically(">=", 9), "the finalizer and the children")
	for _, crash := range []bool{true, false} {
		for n := 1; n <= len(others); n++ {
			t.Run(fmt.Sprintf("crash=%t/write=%d", crash, n), func(t *testing.T) {
				t.Parallel()
				crashing(t, crash, enginetest.NewFence(n, crash).Counting(isOther)).judge(reference)
			})
		}
		for n := 1; n <= statuses; n++ {
			t.Run(fmt.Sprintf("crash=%t/status=%d", crash, n), func(t *testing.T) {
				t.Parallel()
				crashing(t, crash, enginetest.NewFence(n, crash).Counting(isStatus)).judge(reference)
			})
		}
	}
}

// crashing runs a deployment whose operator must reach the last write of the fence.
func crashing(t *testing.T, crash bool, f *enginetest.Fence) *deployment {
	t.Helper()
	d := newDeployment(t)
	d.crash = crash
	d.run(f)
	return d
}

// deployment is a widget with all features, and its operator.
type deployment struct {
	*world
	cr        *widget.Widget
	mu        sync.Mutex
	passwords []string // that register has received
	jobs      int
	crash     bool
	end       []string
}

func newDeployment(t *testing.T) *deployment {
	d := &deployment{world: newWorld(t, t, mutant{})}
	d.needed()
	enginetest.Kubelet{}.Start(t, d.namespace)
	d.cr = &widget.Widget{ObjectMeta: metaOf(d.namespace, "crash"), Spec: widget.Spec{SecretName: "needed", Replicas: new(int32(1))}}
	return d
}

// register remembers the password, like an external server.
func (d *deployment) register(_ context.Context, cr *widget.Widget, in engine.Inputs) (engine.Observed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	password := string(in.Secret(cr.Name + "-credentials")["password"])
	if !slices.Contains(d.passwords, password) {
		d.passwords = append(d.passwords, password)
	}
	return engine.Observed{"account": "made"}, nil
}

// run runs the operator until the widget is ready, with a fence before the API server.
func (d *deployment) run(f *enginetest.Fence) {
	d.t.Helper()
	if f != nil {
		d.mutant.options = []enginetest.Option{f.Option}
	}
	start(d.world, everything(d.register))
	d.create(d.cr)
	if f != nil {
		d.Eventually(f.Reached()).Should(BeClosed(), "the operator makes as many writes as the fence forwards")
	}
	if d.crash {
		d.operator.Stop()
		d.count()
		d.mutant.options = nil
		start(d.world, everything(d.register))
	}
	d.awaitReady(d.cr)
	d.pass(d.cr)
	d.count()
}

// count counts the Jobs that this operator has created, and lists the final objects.
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
	d.Expect(d.passwords).To(Equal([]string{string(stored.Data["password"])}), "passwords that register has received")
	d.Expect(d.jobs).To(Equal(1), "Jobs created")
	if reference != nil {
		d.Expect(d.end).To(Equal(reference.end), "final children")
	}
}
