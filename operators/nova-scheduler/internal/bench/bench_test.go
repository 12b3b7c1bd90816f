//go:build bench

// Package bench measures many NovaSchedulers of one namespace, without pods. It asserts counts of
// requests, and reports times beside a client that only creates the same objects. The operator
// runs in the process of the test.
//
//	make bench [BENCH_ARGS='-count-of 500']
package bench

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	"asterism.dev/operators/nova-scheduler/internal/scheduler"
)

var (
	countOf = flag.Int("count-of", 500, "number of NovaSchedulers")
	runs    = flag.Int("runs", 1, "number of runs")
	both    = flag.Bool("both", true, "measure the client as well")
)

const (
	workers = 16 // concurrent requests of the client
	// most is the median of the writes of the status of a NovaScheduler: until it is Ready, and
	// for a changed Secret. Each reports once that it has begun, and once that it is complete.
	most = 2
	// quietFor is longer than the engine delays messages.
	quietFor = 5 * time.Second
)

func TestBench(t *testing.T) {
	enginetest.InstallCRDs(t, "../../config/crd")
	for range *runs {
		if *both {
			b := newBench(t)
			t.Logf("client alone: %d created in %.1f s", *countOf, b.createAll().Seconds())
		}
		measure(t, newBench(t))
	}
}

func measure(t *testing.T, b *bench) {
	t.Helper()
	operator := enginetest.Run(t, b.namespace, b.client.Scheme(), scheduler.Service)
	began := time.Now()
	created := b.createAll()
	b.awaitAll(func(*novav1.NovaScheduler) bool { return true })
	t.Logf("operator: %d created in %.1f s, all Ready after %.1f s", *countOf, created.Seconds(), time.Since(began).Seconds())
	check(t, "until Ready", operator.Requests)
	b.awaitRest(operator.Requests)
	hash := b.all()[0].Status.ConfigHash
	began = time.Now()
	b.changeSecret()
	b.awaitAll(func(cr *novav1.NovaScheduler) bool { return cr.Status.ConfigHash != hash })
	t.Logf("operator: a changed Secret reached all after %.1f s", time.Since(began).Seconds())
	check(t, "for a changed Secret", operator.Requests)
}

// check compares the writes of the status with the most that are allowed.
func check(t *testing.T, about string, requests *enginetest.Requests) {
	t.Helper()
	mean := func(requests []enginetest.Request) float64 { return float64(len(requests)) / float64(*countOf) }
	status := requests.Of("patch", "novaschedulers/status")
	t.Logf("writes per NovaScheduler %s: %.2f, %.2f of them of the status; reads: %.2f", about, mean(requests.Writes()), mean(status), mean(requests.Reads()))
	byName := map[string]int{}
	for _, request := range status {
		byName[request.Name]++
	}
	counts := slices.Sorted(maps.Values(byName))
	if len(counts) != *countOf || counts[len(counts)/2] > most {
		t.Errorf("the status of %d NovaSchedulers was written %s, want all %d, and a median of at most %d writes: %v", len(counts), about, *countOf, most, counts)
	}
}

// bench is a client and a namespace with the Secrets of NovaSchedulers.
type bench struct {
	t         *testing.T
	ctx       context.Context
	client    client.Client
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, ctx: t.Context(), client: enginetest.Client(t, novav1.AddToScheme), namespace: enginetest.Namespace(t)}
	for _, name := range []string{"database", "bus", "identity"} {
		b.must(b.client.Create(b.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
			StringData: map[string]string{"hostname": "server.example.org", "authURL": "https://keystone.example.org/v3", "user": "nova", "password": "p4ssw0rd"},
		}))
	}
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// createAll creates the NovaSchedulers, and returns how long it took.
func (b *bench) createAll() time.Duration {
	b.t.Helper()
	began := time.Now()
	var next atomic.Int64
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for i := next.Add(1); i <= int64(*countOf); i = next.Add(1) {
				cr := &novav1.NovaScheduler{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("scheduler-%d", i)}}
				cr.Spec.ContainerImage, cr.Spec.Replicas = "quay.example/openstack/nova:26.2.2", new(int32(0))
				cr.Spec.APIDatabaseSecretRef.Name, cr.Spec.Cell0DatabaseSecretRef.Name = "database", "database"
				cr.Spec.MessageBusSecretRef.Name, cr.Spec.IdentitySecretRef.Name = "bus", "identity"
				if err := b.client.Create(b.ctx, cr); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	working.Wait()
	if b.t.Failed() {
		b.t.FailNow()
	}
	return time.Since(began)
}

func (b *bench) all() []novav1.NovaScheduler {
	b.t.Helper()
	var list novav1.NovaSchedulerList
	b.must(b.client.List(b.ctx, &list, client.InNamespace(b.namespace)))
	return list.Items
}

// awaitAll waits until all NovaSchedulers are Ready and meet a condition.
func (b *bench) awaitAll(is func(*novav1.NovaScheduler) bool) {
	b.t.Helper()
	b.must(wait.PollUntilContextTimeout(b.ctx, 500*time.Millisecond, 30*time.Minute, true, func(context.Context) (bool, error) {
		all := b.all()
		return len(all) == *countOf && !slices.ContainsFunc(all, func(cr novav1.NovaScheduler) bool {
			return !meta.IsStatusConditionTrue(cr.Status.Conditions, commonv1.ConditionReady) || !is(&cr)
		}), nil
	}))
}

// awaitRest waits until the operator has sent nothing for quietFor.
func (b *bench) awaitRest(requests *enginetest.Requests) {
	b.t.Helper()
	b.must(wait.PollUntilContextTimeout(b.ctx, quietFor, 30*time.Minute, false, func(context.Context) (bool, error) {
		sent := requests.All()
		requests.Reset()
		return len(sent) == 0, nil
	}))
}

// changeSecret changes a Secret that every NovaScheduler reads.
func (b *bench) changeSecret() {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "bus"}}
	b.must(b.client.Get(b.ctx, client.ObjectKeyFromObject(secret), secret))
	secret.Data["password"] = []byte("changed")
	b.must(b.client.Update(b.ctx, secret))
}
