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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// TestEveryWriteMayBeTheLast kills the operator after each of its writes, or only drops the
// answer. Each time, the final objects are the same, no password changes, and every Job is
// created once.
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
				d.crash = crash
				d.run(enginetest.NewFence(n, crash))
				d.judge(reference)
			})
		}
	}
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
	d := &deployment{world: newWorld(t, t, mutant{}, patience)}
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
	if f != nil && d.meets(f) && d.crash {
		d.operator.Stop()
		d.count()
		d.mutant.options = nil
		start(d.world, everything(d.register))
	}
	d.awaitReady(d.cr)
	d.pass(d.cr)
	d.count()
}

// meets tells whether the operator reached the last write of the fence before the widget was
// ready: the number of writes of the status depends on the speed of other controllers.
func (d *deployment) meets(f *enginetest.Fence) (met bool) {
	d.t.Helper()
	d.Eventually(func() bool {
		select {
		case <-f.Reached():
			met = true
		default:
		}
		return met || strings.HasPrefix(d.condition(d.cr, "Ready")(), "True")
	}).Should(BeTrue())
	return met
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
