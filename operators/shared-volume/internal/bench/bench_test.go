//go:build bench

// Package bench measures SharedVolumes against a bare client that makes the same
// volumes and claims, by name, as people do, or by UID, as the operator does, and
// against a client that makes the operator's own requests without an operator. It
// asserts counts, and reports times: for figures that mean something, run it on a
// machine that does nothing else meanwhile.
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
	countOf    = flag.Int("count-of", 1000, "how many volumes")
	runs       = flag.Int("runs", 3, "how often each is measured, alternating")
	both       = flag.Bool("both", true, "measure the clients as well")
	namespaces = flag.Int("namespaces", 20, "over how many namespaces they are spread")
)

const (
	workers    = 16 // of the client that creates and deletes
	fileSystem = "fs-0000000b"
	patience   = 30 * time.Minute
	// maxResident of the operator in MiB, also while much is going on.
	maxResident = 256
	// quietFor is without writes for longer than the operator holds back messages.
	quietFor = 5 * time.Second
)

// figures of one run.
type figures struct {
	most, bound, gone          time.Duration // most: 99 of 100 are bound
	writesToReady, writesToGo  written
	residentReady, residentMax int // MiB: when all are ready and nothing happens, and at most
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

// contestants of one run: two bare clients, the operator's requests, the operator.
type contestants struct{ byName, byUID, requests, operator figures }

// compare prints a table of medians, as docs/performance.md has it.
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
		seconds := func(who func(contestants) figures) float64 {
			var values []float64
			for _, c := range all {
				values = append(values, row.of(who(c)).Seconds())
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		named := seconds(func(c contestants) figures { return c.byName })
		known := seconds(func(c contestants) figures { return c.byUID })
		same := seconds(func(c contestants) figures { return c.requests })
		our := seconds(func(c contestants) figures { return c.operator })
		t.Logf("| %s | %.1f s | %.1f s | %.1f s | %.1f s | %.2f | %.2f | %.2f |", row.name, named, known, same, our, our/named, our/known, our/same)
	}
}

func report(t *testing.T, who string, f figures) {
	t.Helper()
	line := fmt.Sprintf("%-11s: 99 of 100 bound after %.1f s, all %d after %.1f s, gone after %.1f s", who, f.most.Seconds(), *countOf, f.bound.Seconds(), f.gone.Seconds())
	if f.writesToReady != nil {
		line += fmt.Sprintf("; writes each: %d to Ready, %d to delete (mean: %.3f and %.3f); resident: %d MiB when ready, %d MiB at most",
			f.writesToReady.median(), f.writesToGo.median(), each(f.writesToReady), each(f.writesToGo), f.residentReady, f.residentMax)
	}
	t.Log(line)
}

func each(w written) float64 { return float64(w.total()) / float64(*countOf) }

func check(t *testing.T, f figures) {
	t.Helper()
	if median := f.writesToReady.median(); median == 0 || median > 5 {
		t.Errorf("a median of %d writes until a SharedVolume is Ready, 5 at most", median)
	}
	if median := f.writesToGo.median(); median == 0 || median > 4 {
		t.Errorf("a median of %d writes to delete a SharedVolume, 4 at most", median)
	}
	if f.residentMax > maxResident {
		t.Errorf("the operator held %d MiB for %d SharedVolumes, %d at most", f.residentMax, *countOf, maxResident)
	}
}

// bench is a set of namespaces.
type bench struct {
	t          *testing.T
	ctx        context.Context
	client     client.WithWatch
	namespaces []string
	working    sync.WaitGroup // on what begin has begun
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
	managed := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"managementState":"Managed"}}`)) // whatever another suite has left
	b.must(c.Patch(b.ctx, cluster, managed))
	made := &kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
	b.must(client.IgnoreNotFound(c.Delete(b.ctx, made))) // which another suite has made, and the operator would not touch
	process := b.start()
	b.await(made, func() bool { return c.Get(b.ctx, client.ObjectKeyFromObject(made), made) == nil })
	process.stop()
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// name and namespace of the i-th volume.
func (b *bench) key(run, i int) client.ObjectKey {
	return client.ObjectKey{Namespace: b.namespaces[i%len(b.namespaces)], Name: fmt.Sprintf("v-%d-%05d", run, i)}
}

// bare does what has to be done, and nothing else.
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

// pairByName makes a volume that is reserved for a claim by name, and the claim,
// which names the volume.
func (b *bench) pairByName(run, i int) error {
	volume, claim := pair(b.key(run, i), i)
	claim.Spec.VolumeName = volume.Name
	if err := b.client.Create(b.ctx, volume); err != nil {
		return err
	}
	return b.client.Create(b.ctx, claim)
}

// pairByUID makes a claim, and a volume that is reserved for its UID.
func (b *bench) pairByUID(run, i int) error {
	volume, claim := pair(b.key(run, i), i)
	if err := b.client.Create(b.ctx, claim); err != nil {
		return err
	}
	volume.Spec.ClaimRef.UID = claim.UID
	return b.client.Create(b.ctx, volume)
}

// requests makes those that the operator makes for a SharedVolume that goes well,
// one after the other, and what its user makes. Nobody watches, compares or decides.
func (b *bench) requests(run int) (f figures) {
	b.t.Helper()
	claims := b.follow(&corev1.PersistentVolumeClaimList{}, bound)
	defer claims.stop()
	began := b.begin(func(i int) error { return b.request(run, i) })
	f.most, f.bound = claims.until(began, mostBound), claims.until(began, allBound)
	volumes := b.follow(&corev1.PersistentVolumeList{}, ofBench)
	defer volumes.stop()
	b.finish() // the last status and event, which no claim waits for
	began = b.begin(func(i int) error {
		cr := b.shared(run, i)
		volume, claim := pair(b.key(run, i), i)
		for _, obj := range []client.Object{cr, claim, volume} {
			if err := b.client.Delete(b.ctx, obj); err != nil {
				return err
			}
			if obj == cr {
				if err := b.say(cr, deleting(cr)); err != nil {
					return err
				}
			} else {
				b.absent(obj) // the operator reads once, too
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
	made, err := b.apply(claim)
	if err != nil {
		return err
	}
	volume.Spec.ClaimRef.UID = made.GetUID()
	if _, err := b.apply(volume); err != nil {
		return err
	}
	claimed := unbound(cr)
	if err := b.say(cr, claimed); err != nil {
		return err
	}
	return b.say(claimed, readied(claimed, volume))
}

// say a status, and record an event about it.
func (b *bench) say(before, now *storagev1.SharedVolume) error {
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

// operated is the same by SharedVolumes.
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
	f.writesToReady = audit.writes(sharing)
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
	f.writesToGo = audit.writes(sharing)
	f.residentMax = max(f.residentMax, process.residentMax())
	return f
}

// whenShared waits until the SharedVolumes are like that. They are not watched before,
// which would take time that nobody takes from the bare client.
func (b *bench) whenShared(are func(yes, all int) bool) {
	b.t.Helper()
	all := b.follow(&storagev1.SharedVolumeList{}, isReady)
	defer all.stop()
	all.until(time.Now(), are)
}

// rests demands that a new process writes nothing but what is new.
func (b *bench) rests(process *process, run int) {
	b.t.Helper()
	process.stop()
	audit := openAudit(b.t)
	again := b.start()
	defer again.stop()
	b.settled(run)
	writes := audit.writes(sharing)
	delete(writes, client.ObjectKeyFromObject(b.shared(run, *countOf)))
	if writes.total() != extraVolume {
		b.t.Errorf("%d writes at rest, after a restart", writes.total()-extraVolume)
	}
}

// quiet waits until the operator has written nothing for a while: what is ready may
// have messages that it holds back, and events come at a pace.
func (b *bench) quiet() {
	b.t.Helper()
	audit := openAudit(b.t)
	tick := time.NewTicker(quietFor)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		<-tick.C
		if audit.writes(told).total() == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the operator still writes after %s", patience)
		}
	}
}

// extraVolume is what the one that settled makes costs in writes that do not name
// it: its PersistentVolume is created and deleted.
const extraVolume = 2

// settled makes and deletes one SharedVolume: when it is gone, the operator has
// looked at all others.
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
