//go:build bench

// Package bench compares SharedVolumes with bare clients that create the same volumes and
// claims: reserved by name, as users do, or by UID, as the operator does; and with a client
// that makes the requests of the operator. It asserts counts and reports times. Times are
// meaningful only on a machine without other load.
//
//	make bench [BENCH_ARGS='-count-of 10000 -runs 1']
package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

var (
	countOf    = flag.Int("count-of", 1000, "number of volumes")
	runs       = flag.Int("runs", 3, "number of runs of each client and of the operator, alternating")
	both       = flag.Bool("both", true, "measure the clients as well")
	namespaces = flag.Int("namespaces", 20, "number of namespaces of the volumes")
)

const (
	workers    = 16 // concurrent requests of a client
	fileSystem = "fs-0000000b"
	patience   = 30 * time.Minute
	// maxResident is the most memory of the operator in MiB, also under load.
	maxResident = 256
	// quietFor is longer than the operator delays messages, also on a slow machine.
	quietFor = 15 * time.Second
)

// figures of one run.
type figures struct {
	most, bound, gone             time.Duration // most: 99 of 100 are bound
	writesToReady, writesToDelete written
	residentReady, residentMax    int // MiB: when all are ready and no request is made, and the maximum
}

func TestBench(t *testing.T) {
	b := newBench(t)
	var all []contestants
	for run := range *runs {
		var c contestants
		if *both {
			c.byName = b.bare(run, b.pairByName)
			report(t, "by name", c.byName)
			c.byUID = b.bare(run+*runs, b.pairByUID)
			report(t, "by UID", c.byUID)
			c.requests = b.requests(run + 2**runs)
			report(t, "requests", c.requests)
		}
		c.operator = b.operated(run)
		report(t, "operator", c.operator)
		check(t, c.operator)
		all = append(all, c)
	}
	if *both {
		compare(t, all)
	}
}

// contestants are the figures of two bare clients, of the requests of the operator, and of
// the operator.
type contestants struct{ byName, byUID, requests, operator figures }

// compare prints a table of medians in the form of docs/performance.md.
func compare(t *testing.T, all []contestants) {
	t.Helper()
	t.Logf("| %d volumes, medians | by name | by UID | same requests | operator | operator to by name | to by UID | to requests |", *countOf)
	for _, row := range []struct {
		name string
		of   func(figures) time.Duration
	}{
		{"created → 99 of 100 bound", func(f figures) time.Duration { return f.most }},
		{"created → all bound", func(f figures) time.Duration { return f.bound }},
		{"deleted → all gone", func(f figures) time.Duration { return f.gone }},
	} {
		median := func(of func(contestants) figures) float64 {
			var values []float64
			for _, c := range all {
				values = append(values, row.of(of(c)).Seconds())
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		byName := median(func(c contestants) figures { return c.byName })
		byUID := median(func(c contestants) figures { return c.byUID })
		requests := median(func(c contestants) figures { return c.requests })
		operator := median(func(c contestants) figures { return c.operator })
		t.Logf("| %s | %.1f s | %.1f s | %.1f s | %.1f s | %.2f | %.2f | %.2f |", row.name, byName, byUID, requests, operator, operator/byName, operator/byUID, operator/requests)
	}
}

func report(t *testing.T, name string, f figures) {
	t.Helper()
	line := fmt.Sprintf("%-11s: 99 of 100 bound after %.1f s, all %d after %.1f s, gone after %.1f s", name, f.most.Seconds(), *countOf, f.bound.Seconds(), f.gone.Seconds())
	if f.writesToReady != nil {
		line += fmt.Sprintf("; writes each: %d to Ready, %d to delete (mean: %.3f and %.3f); resident: %d MiB when ready, %d MiB at most",
			f.writesToReady.median(), f.writesToDelete.median(), each(f.writesToReady), each(f.writesToDelete), f.residentReady, f.residentMax)
	}
	t.Log(line)
}

func each(w written) float64 { return float64(w.total()) / float64(*countOf) }

func check(t *testing.T, f figures) {
	t.Helper()
	if median := f.writesToReady.median(); median == 0 || median > 5 {
		t.Errorf("the median is %d writes until a SharedVolume is Ready, want 1 to 5", median)
	}
	if median := f.writesToDelete.median(); median == 0 || median > 4 {
		t.Errorf("the median is %d writes to delete a SharedVolume, want 1 to 4", median)
	}
	if f.residentMax > maxResident {
		t.Errorf("the operator used %d MiB for %d SharedVolumes, want at most %d", f.residentMax, *countOf, maxResident)
	}
}

// bench is a client and a set of namespaces.
type bench struct {
	t          *testing.T
	ctx        context.Context
	client     client.WithWatch
	namespaces []string
	working    sync.WaitGroup // the workers of begin
	// wrapper is the beginning of the operator's command, and environment a part of its variables.
	wrapper, environment []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	enginetest.InstallCRDs(t, "../../config/crd")
	config := rest.CopyConfig(enginetest.Config(t))
	config.DisableCompression = true // as the operator does
	c, err := client.NewWithWatch(config, client.Options{Scheme: enginetest.Scheme(t, storagev1.AddToScheme)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, ctx: context.Background(), client: c}
	for range *namespaces {
		b.namespaces = append(b.namespaces, enginetest.Namespace(t))
	}
	policy := &storagev1.SharedVolumePolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	policy.Spec.Namespaces.Names = b.namespaces
	policy.Spec.FileSystems = []storagev1.FileSystemGrant{{FileSystemID: fileSystem, AccessPoints: storagev1.AccessPointsAny, Access: storagev1.AccessReadWrite}}
	b.must(c.Create(b.ctx, policy))
	t.Cleanup(func() { b.must(c.Delete(b.ctx, policy)) })
	cluster := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
	b.must(client.IgnoreAlreadyExists(c.Create(b.ctx, cluster)))
	managed := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"managementState":"Managed"}}`)) // another suite may have left another state
	b.must(c.Patch(b.ctx, cluster, managed))
	storageClass := &kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
	b.must(client.IgnoreNotFound(c.Delete(b.ctx, storageClass))) // the class of another suite would be a conflict
	process := b.start()
	b.await(storageClass, func() bool {
		return c.Get(b.ctx, client.ObjectKeyFromObject(storageClass), storageClass) == nil
	})
	process.stop()
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// key returns namespace and name of the i-th volume.
func (b *bench) key(run, i int) client.ObjectKey {
	return client.ObjectKey{Namespace: b.namespaces[i%len(b.namespaces)], Name: fmt.Sprintf("v-%d-%05d", run, i)}
}

// bare measures a client that only creates and deletes volumes and claims.
func (b *bench) bare(run int, create func(run, i int) error) (f figures) {
	b.t.Helper()
	claims := b.follow(&corev1.PersistentVolumeClaimList{}, bound)
	defer claims.stop()
	began := b.begin(func(i int) error { return create(run, i) })
	f.most, f.bound = claims.until(began, mostBound), claims.until(began, allBound)
	volumes := b.follow(&corev1.PersistentVolumeList{}, ofBench)
	defer volumes.stop()
	began = b.begin(func(i int) error {
		volume, claim := pair(b.key(run, i), i)
		if err := b.client.Delete(b.ctx, claim); err != nil {
			return err
		}
		return b.client.Delete(b.ctx, volume)
	})
	f.gone = max(claims.until(began, none), volumes.until(began, none))
	return f
}

// pairByName creates a volume that is reserved for a claim by name, and the claim, which
// names the volume.
func (b *bench) pairByName(run, i int) error {
	volume, claim := pair(b.key(run, i), i)
	claim.Spec.VolumeName = volume.Name
	if err := b.client.Create(b.ctx, volume); err != nil {
		return err
	}
	return b.client.Create(b.ctx, claim)
}

// pairByUID creates a claim, and a volume that is reserved for the UID of the claim.
func (b *bench) pairByUID(run, i int) error {
	volume, claim := pair(b.key(run, i), i)
	if err := b.client.Create(b.ctx, claim); err != nil {
		return err
	}
	volume.Spec.ClaimRef.UID = claim.UID
	return b.client.Create(b.ctx, volume)
}

// requests measures the requests of a user and of the operator for a SharedVolume without
// failures, one after the other. No client watches, compares or decides.
func (b *bench) requests(run int) (f figures) {
	b.t.Helper()
	claims := b.follow(&corev1.PersistentVolumeClaimList{}, bound)
	defer claims.stop()
	began := b.begin(func(i int) error { return b.request(run, i) })
	f.most, f.bound = claims.until(began, mostBound), claims.until(began, allBound)
	volumes := b.follow(&corev1.PersistentVolumeList{}, ofBench)
	defer volumes.stop()
	b.finish() // includes the last status and event of each SharedVolume
	began = b.begin(func(i int) error {
		cr := b.shared(run, i)
		volume, claim := pair(b.key(run, i), i)
		for _, obj := range []client.Object{cr, claim, volume} {
			if err := b.client.Delete(b.ctx, obj); err != nil {
				return err
			}
			if obj == cr {
				if err := b.writeStatus(cr, deleting(cr)); err != nil {
					return err
				}
			} else {
				b.absent(obj) // the operator also reads once
			}
		}
		return b.client.Patch(b.ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	f.gone = max(claims.until(began, none), volumes.until(began, none))
	b.finish()
	return f
}

func (b *bench) request(run, i int) error {
	cr := b.shared(run, i)
	if err := b.client.Create(b.ctx, cr); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["bench.asterism.dev/requests"]}}`))
	if err := b.client.Patch(b.ctx, cr, patch); err != nil {
		return err
	}
	volume, claim := pair(b.key(run, i), i)
	childOf(cr, storagev1.ConditionClaimed, claim)
	childOf(cr, storagev1.ConditionVolumeReady, volume)
	claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"bench.asterism.dev/owner-uid": string(cr.UID)}}
	applied, err := b.apply(claim)
	if err != nil {
		return err
	}
	volume.Spec.ClaimRef.UID = applied.GetUID()
	if _, err := b.apply(volume); err != nil {
		return err
	}
	claimed := unbound(cr)
	if err := b.writeStatus(cr, claimed); err != nil {
		return err
	}
	return b.writeStatus(claimed, ready(claimed, volume))
}

// writeStatus patches the status and creates an event.
func (b *bench) writeStatus(before, now *storagev1.SharedVolume) error {
	if err := b.client.Status().Patch(b.ctx, now, client.MergeFrom(before)); err != nil {
		return err
	}
	return b.client.Create(b.ctx, eventAbout(now))
}

func (b *bench) apply(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	body := &unstructured.Unstructured{Object: content}
	body.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindOf(obj)))
	delete(body.Object, "status")
	return body, b.client.Apply(b.ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner("bench"))
}

// operated measures the operator with SharedVolumes.
func (b *bench) operated(run int) (f figures) {
	b.t.Helper()
	process := b.start()
	defer process.stop()
	claims := b.follow(&corev1.PersistentVolumeClaimList{}, bound)
	defer claims.stop()
	audit := openAudit(b.t)
	began := b.begin(func(i int) error { return b.client.Create(b.ctx, b.shared(run, i)) })
	f.most, f.bound = claims.until(began, mostBound), claims.until(began, allBound)
	b.whenShared(allBound)
	f.writesToReady = audit.writes(sharedVolumeResources)
	b.quiet()
	f.residentReady, f.residentMax = process.resident(), process.residentMax()
	b.rests(process, run)
	process = b.start()
	defer process.stop()
	volumes := b.follow(&corev1.PersistentVolumeList{}, ofBench)
	defer volumes.stop()
	b.settled(run)
	audit = openAudit(b.t)
	began = b.begin(func(i int) error { return b.client.Delete(b.ctx, b.shared(run, i)) })
	f.gone = max(claims.until(began, none), volumes.until(began, none))
	b.whenShared(none)
	f.writesToDelete = audit.writes(sharedVolumeResources)
	f.residentMax = max(f.residentMax, process.residentMax())
	return f
}

// whenShared waits until the counts of the SharedVolumes are right. An earlier watch would
// take time from the operator, and the bare clients have no such watch.
func (b *bench) whenShared(right func(yes, all int) bool) {
	b.t.Helper()
	all := b.follow(&storagev1.SharedVolumeList{}, isReady)
	defer all.stop()
	all.until(time.Now(), right)
}

// rests asserts that a restarted operator writes only for a new SharedVolume.
func (b *bench) rests(process *process, run int) {
	b.t.Helper()
	process.stop()
	audit := openAudit(b.t)
	again := b.start()
	defer again.stop()
	b.settled(run)
	writes := audit.writes(sharedVolumeResources)
	delete(writes, client.ObjectKeyFromObject(b.shared(run, *countOf)))
	if writes.total() != extraVolume {
		b.t.Errorf("the operator made %d writes for unchanged SharedVolumes after a restart, want 0", writes.total()-extraVolume)
	}
}

// quiet waits until the operator has made no writes for quietFor: the operator delays some
// messages, and limits the rate of events.
func (b *bench) quiet() {
	b.t.Helper()
	audit := openAudit(b.t)
	tick := time.NewTicker(quietFor)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		<-tick.C
		if audit.writes(resourcesAndEvents).total() == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the operator still writes after %s", patience)
		}
	}
}

// extraVolume is the number of writes for the PersistentVolume of settled, which has another
// name than its SharedVolume: the volume is created and deleted.
const extraVolume = 2

// settled creates and deletes one SharedVolume. When the SharedVolume is gone, the operator
// has reconciled all others.
func (b *bench) settled(run int) {
	b.t.Helper()
	last := b.shared(run, *countOf)
	b.must(b.client.Create(b.ctx, last))
	b.await(last, func() bool {
		return b.client.Get(b.ctx, client.ObjectKeyFromObject(last), last) == nil && isReady(last)
	})
	b.must(b.client.Delete(b.ctx, last))
	b.await(last, func() bool { return b.absent(last) })
}
