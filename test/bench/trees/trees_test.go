//go:build bench

// Package trees measures the operators of Nova with many control planes. The operators run as
// processes, like in their Deployments, with the API server of the test suites. MariaDB is real.
// Pods, Keystone and the compute API are simulated and answer at once. The bench asserts counts of
// requests, and reports times, CPU and memory.
//
//	make bench-trees [BENCH_ARGS='-count-of 1000 -rest 3m']
package trees

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"
)

var (
	countOf    = flag.Int("count-of", 1000, "number of Novas; a tenth of them is measured first")
	namespaces = flag.Int("namespaces", 20, "number of namespaces of the Novas")
	rest       = flag.Duration("rest", 3*time.Minute, "time of the measurement at rest; Go collects garbage after two minutes")
)

const (
	root     = "../../../"
	workers  = 16 // concurrent requests of the client
	patience = 3 * time.Hour
	// quietFor is longer than the engine delays messages.
	quietFor = 15 * time.Second
	// most is the number of writes until a Nova with one cell is Ready, by all operators, without
	// events.
	most = 150
)

// bench is a client of an API server with operators and a simulated cloud.
type bench struct {
	t         *testing.T
	client    client.Client
	cloud     *cloud
	audit     *audit
	operators []*operator
	novas     int
}

// usage is what an operator uses at rest.
type usage struct {
	resident int     // KiB
	cpu      float64 // seconds in a minute
}

func TestTrees(t *testing.T) {
	b := newBench(t)
	for _, o := range b.operators {
		o.start()
	}
	tenth := max(1, *countOf/10)
	few, all := b.grow(0, tenth), b.grow(tenth, *countOf)
	t.Logf("| at rest | MiB with %d | MiB with %d | KiB per further Nova | MiB at most | CPU s per minute with %d | with %d |", tenth, *countOf, tenth, *countOf)
	for i, o := range b.operators {
		further := float64(all[i].resident-few[i].resident) / float64(max(1, *countOf-tenth))
		t.Logf("| %s | %d | %d | %.0f | %d | %.2f | %.2f |", o.name, few[i].resident>>10, all[i].resident>>10, further, o.memory("VmHWM:")>>10, few[i].cpu, all[i].cpu)
	}
	for _, o := range b.operators {
		b.restart(o)
	}
}

// newBench installs the kinds, hands the namespaces over, and builds the operators.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, client: enginetest.Client(t), audit: openAudit(t)}
	for _, name := range []string{"nova", "nova-api", "nova-conductor", "nova-scheduler", "nova-metadata", "nova-novncproxy"} {
		b.operators = append(b.operators, &operator{t: t, name: name})
	}
	kinds := []string{root + "operators/nova-compute/config/crd"}
	for _, o := range b.operators {
		kinds = append(kinds, root+"operators/"+o.name+"/config/crd")
	}
	enginetest.InstallCRDs(t, kinds...)
	b.cloud = startCloud(t)
	for _, o := range b.operators {
		o.build(b.cloud.hosts)
	}
	b.must(b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}))
	for i := range *namespaces {
		b.must(b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}))
		for _, binding := range enginetest.ReadSamples(t, root+"config/namespace/rolebindings.yaml") {
			binding.SetNamespace(namespaceOf(i))
			b.must(b.create(binding))
		}
		enginetest.Kubelet{Job: b.cloud.manage}.Start(t, namespaceOf(i))
	}
	return b
}

// create creates an object of a new API server: the bench leaves its objects to `make test-server-down`.
func (b *bench) create(obj client.Object) error {
	if err := b.client.Create(b.t.Context(), obj); err != nil {
		return fmt.Errorf("the bench needs a new API server: %w", err)
	}
	return nil
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// grow creates Novas, and returns what each operator uses when all are Ready.
func (b *bench) grow(from, to int) []usage {
	b.t.Helper()
	b.audit.take()
	used := b.cpu()
	began := time.Now()
	b.createNovas(from, to)
	created := time.Since(began)
	b.awaitReady(to)
	ready := time.Since(began)
	counted := b.awaitQuiet()
	further := float64(to - from)
	b.t.Logf("%d Novas more: created after %.0f s, all Ready after %.0f s (%.2f s each); for each of them:", to-from, created.Seconds(), ready.Seconds(), ready.Seconds()/further)
	all := 0
	for i, o := range b.operators {
		of := counted[o.name]
		all += of.writes()
		b.t.Logf("  %-15s %s; CPU: %.2f s", o.name, of.per(further), (o.cpu()-used[i])/further)
	}
	if mean := float64(all) / further; mean > most || all == 0 {
		b.t.Errorf("the operators wrote %.1f times until a Nova was Ready, want at most %d", mean, most)
	}
	return b.atRest()
}

// createNovas creates Novas with their Secrets and databases.
func (b *bench) createNovas(from, to int) {
	b.t.Helper()
	b.cloud.resolve(to)
	b.novas = to
	b.must(inParallel(from, to, func(i int) error {
		err := b.cloud.createDatabases(i)
		for _, object := range b.cloud.objects(i) {
			if err == nil {
				err = b.create(object)
			}
		}
		return err
	}))
}

// awaitReady waits until all Novas are Ready.
func (b *bench) awaitReady(count int) {
	b.t.Helper()
	novas := &unstructured.UnstructuredList{}
	novas.SetAPIVersion("nova.asterism.dev/v1alpha1")
	novas.SetKind("NovaList")
	ready, last := 0, time.Now()
	err := wait.PollUntilContextTimeout(b.t.Context(), 3*time.Second, patience, true, func(ctx context.Context) (bool, error) {
		err := b.client.List(ctx, novas)
		ready = 0
		for _, nova := range novas.Items {
			if isReady(nova) {
				ready++
			}
		}
		if time.Since(last) > time.Minute {
			b.t.Logf("%d of %d Novas are Ready", ready, count)
			last = time.Now()
		}
		return ready == count, err
	})
	if err != nil {
		b.t.Fatalf("%d of %d Novas are Ready: %v", ready, count, err)
	}
}

func isReady(nova unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(nova.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// hourly is the most reads of an operator in a time at rest: the engine reads lists of objects that
// it does not watch once in an hour for each Nova, and sometimes more than one.
func (b *bench) hourly(at time.Duration) int { return int(4 * float64(b.novas) * at.Hours()) }

// awaitQuiet waits until every operator has rested for quietFor, and returns its requests until
// then.
func (b *bench) awaitQuiet() map[string]tally {
	b.t.Helper()
	counted := map[string]tally{}
	err := wait.PollUntilContextTimeout(b.t.Context(), quietFor, patience, false, func(context.Context) (bool, error) {
		quiet := true
		for name, of := range b.audit.take() {
			quiet = quiet && of.writes()+of.events == 0 && of.reads <= b.hourly(quietFor)
			counted[name] = counted[name].plus(of)
		}
		return quiet, nil
	})
	if err != nil {
		b.t.Fatalf("the operators do not rest: %v: %v", err, counted)
	}
	return counted
}

// atRest measures each operator while nothing changes. Only Leases may be written. Watches end
// after some minutes and are renewed, and in each namespace an operator asks every 30 seconds
// whether Routes are served by now.
func (b *bench) atRest() []usage {
	b.t.Helper()
	used, calls, logins := b.cpu(), b.cloud.calls.Load(), b.cloud.logins()
	b.audit.take()
	time.Sleep(*rest) //nolint:forbidigo // it is the measured time
	counted, now := b.audit.take(), b.cpu()
	discoveries := *namespaces * (int(*rest/(30*time.Second)) + 1)
	b.t.Logf("at rest, per minute: %.0f requests to Keystone and the compute API, %.0f connections to MariaDB",
		float64(b.cloud.calls.Load()-calls)/rest.Minutes(), float64(b.cloud.logins()-logins)/rest.Minutes())
	var all []usage
	for i, o := range b.operators {
		of := counted[o.name]
		b.t.Logf("  %-15s %s", o.name, of.per(rest.Minutes()))
		if of.writes()+of.events > 0 || of.reads > b.hourly(*rest) || of.discoveries > discoveries || of.leases == 0 {
			b.t.Errorf("operator %s at rest: %s; want at most %d discoveries and %d reads, and else only Leases and watches", o.name, of.per(1), discoveries, b.hourly(*rest))
		}
		all = append(all, usage{resident: o.memory("VmRSS:"), cpu: (now[i] - used[i]) / rest.Minutes()})
	}
	return all
}

// restart restarts an operator, which must not write anything.
func (b *bench) restart(o *operator) {
	b.t.Helper()
	o.stop()
	b.audit.take()
	began := time.Now()
	o.start()
	of := b.awaitQuiet()[o.name]
	b.t.Logf("restart of %s: quiet after %.1f s, %.2f CPU s, %d MiB at most, %s", o.name, of.last.Sub(began).Seconds(), o.cpu(), o.memory("VmHWM:")>>10, of.per(1))
	if of.writes()+of.events > 0 || of.watches == 0 {
		b.t.Errorf("operator %s after a restart: %s, want watches, and no write", o.name, of.per(1))
	}
}

// cpu returns the seconds of each operator.
func (b *bench) cpu() (seconds []float64) {
	for _, o := range b.operators {
		seconds = append(seconds, o.cpu())
	}
	return seconds
}

func namespaceOf(i int) string { return fmt.Sprintf("trees-%02d", i%*namespaces) }

func nameOf(i int) string { return fmt.Sprintf("t%05d", i) }
