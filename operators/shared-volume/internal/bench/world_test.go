//go:build bench

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// class is the StorageClass of SharedVolumes.
const class = "shared-volume"

// pair returns a volume and the claim for which the volume is reserved by name.
func pair(key client.ObjectKey, i int) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	capacity := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace + "-" + key.Name}}
	volume.Spec = corev1.PersistentVolumeSpec{
		Capacity: capacity, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: class,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: key.Namespace, Name: key.Name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "efs.csi.aws.com", VolumeHandle: fmt.Sprintf("%s::fsap-%08x", fileSystem, i),
		}},
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	claim.Spec.AccessModes = volume.Spec.AccessModes
	claim.Spec.StorageClassName, claim.Spec.Resources.Requests = &volume.Spec.StorageClassName, capacity
	return volume, claim
}

func (b *bench) shared(run, i int) *storagev1.SharedVolume {
	key := b.key(run, i)
	cr := &storagev1.SharedVolume{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	cr.Spec.FileSystemID = fileSystem
	cr.Spec.AccessPointID = storagev1.AccessPointID(fmt.Sprintf("fsap-%08x", i))
	return cr
}

func kindOf(obj client.Object) string {
	if _, ok := obj.(*corev1.PersistentVolume); ok {
		return "PersistentVolume"
	}
	return "PersistentVolumeClaim"
}

// unbound returns a SharedVolume with the status when the claim and its volume exist.
func unbound(cr *storagev1.SharedVolume) *storagev1.SharedVolume {
	pending := cr.DeepCopy()
	for _, condition := range storagev1.SharedVolumeConditions {
		set(pending, condition, metav1.ConditionTrue, "")
	}
	set(pending, storagev1.ConditionBound, metav1.ConditionFalse, "PersistentVolumeClaim "+cr.Name+" is Pending")
	set(pending, commonv1.ConditionReady, metav1.ConditionFalse, "PersistentVolumeClaim "+cr.Name+" is Pending")
	for stage, child := range map[string]string{storagev1.ConditionClaimed: "PersistentVolumeClaim/", storagev1.ConditionVolumeReady: "PersistentVolume/"} {
		pending.Status.Completed = append(pending.Status.Completed, commonv1.CompletedStage{Stage: stage, Inputs: "0123456789abcdef", Children: []string{child + cr.Name}})
	}
	pending.Status.ObservedGeneration, pending.Status.ClaimName = cr.Generation, cr.Name
	return pending
}

// ready returns a SharedVolume with the status when the claim is bound.
func ready(cr *storagev1.SharedVolume, volume *corev1.PersistentVolume) *storagev1.SharedVolume {
	bound := cr.DeepCopy()
	set(bound, storagev1.ConditionBound, metav1.ConditionTrue, "")
	set(bound, commonv1.ConditionReady, metav1.ConditionTrue, "")
	bound.Status.ClaimRef = &commonv1.ObjectReference{Name: cr.Name}
	bound.Status.VolumeName = volume.Name
	bound.Status.FileSystemID, bound.Status.AccessPointID = string(cr.Spec.FileSystemID), string(cr.Spec.AccessPointID)
	return bound
}

// deleting returns a SharedVolume with the status while the claim is being deleted.
func deleting(cr *storagev1.SharedVolume) *storagev1.SharedVolume {
	gone := cr.DeepCopy()
	set(gone, commonv1.ConditionReady, metav1.ConditionFalse, "ClaimRemoved: PersistentVolumeClaim "+cr.Name+" is being deleted")
	return gone
}

func set(cr *storagev1.SharedVolume, condition string, status metav1.ConditionStatus, message string) {
	meta.SetStatusCondition(&cr.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: "Complete", Message: message, ObservedGeneration: cr.Generation,
	})
}

// childOf sets labels and annotations like the operator's.
func childOf(cr *storagev1.SharedVolume, stage string, child client.Object) {
	child.SetLabels(map[string]string{
		"app.kubernetes.io/component": "sharedvolume", "app.kubernetes.io/instance": cr.Name, "app.kubernetes.io/managed-by": "bench",
		"app.kubernetes.io/name": "shared-volume", "app.kubernetes.io/part-of": cr.Name,
		"bench.asterism.dev/owner-uid": string(cr.UID), "bench.asterism.dev/stage": stage,
	})
	child.SetAnnotations(map[string]string{
		"bench.asterism.dev/applied-hash": "0123456789abcdef",
		"bench.asterism.dev/owner":        cr.Namespace + "/" + cr.Name + "/" + string(cr.UID),
	})
	child.SetResourceVersion("1") // the apply must create the child
}

func eventAbout(cr *storagev1.SharedVolume) *eventsv1.Event {
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: cr.Namespace, GenerateName: cr.Name + "-"}}
	event.EventTime, event.Type, event.Reason, event.Action = metav1.NowMicro(), corev1.EventTypeNormal, "Ready", "Bound"
	event.ReportingController, event.ReportingInstance = "asterism.dev/bench", "bench"
	event.Regarding = corev1.ObjectReference{APIVersion: storagev1.GroupVersion.String(), Kind: "SharedVolume", Namespace: cr.Namespace, Name: cr.Name, UID: cr.UID}
	return event
}

// begin starts workers that call do for every volume, and returns the time of the start.
func (b *bench) begin(do func(i int) error) time.Time {
	began := time.Now()
	var next atomic.Int64
	for range workers {
		b.working.Go(func() {
			for i := int(next.Add(1)) - 1; i < *countOf; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					panic(err) //nolint:forbidigo // the caller would wait in vain
				}
			}
		})
	}
	return began
}

// finish waits for the workers of begin.
func (b *bench) finish() { b.working.Wait() }

func bound(obj client.Object) bool {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	return ok && claim.Status.Phase == corev1.ClaimBound
}

func isReady(obj client.Object) bool {
	cr, ok := obj.(*storagev1.SharedVolume)
	return ok && meta.IsStatusConditionTrue(cr.Status.Conditions, "Ready")
}

func mostBound(yes, _ int) bool { return yes >= *countOf*99/100 }

func allBound(yes, _ int) bool { return yes == *countOf }

func ofBench(client.Object) bool { return true }

func none(_, all int) bool { return all == 0 }

// follower counts the objects of a kind, and the objects that meet a condition.
type follower struct {
	t       *testing.T
	mu      sync.Mutex
	is      map[types.UID]bool
	yes     int
	changed chan struct{}
	stop    func()
}

// follow watches the objects of a kind. Callers stop the follower as soon as possible,
// because its watch takes time from the measured client.
func (b *bench) follow(list client.ObjectList, as func(client.Object) bool) *follower {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	f := &follower{t: b.t, is: map[types.UID]bool{}, changed: make(chan struct{}, 1), stop: cancel}
	b.t.Cleanup(cancel)
	w, err := b.watch(ctx, list, f, as)
	b.must(err)
	go func() {
		for ctx.Err() == nil {
			for event := range w.ResultChan() {
				if obj, ok := event.Object.(client.Object); ok && b.counts(obj) {
					f.note(obj.GetUID(), event.Type == watch.Deleted, as(obj))
				}
			}
			if again, err := b.watch(ctx, list, f, as); err == nil { // the API server ends a watch that is too slow
				w = again
			}
		}
	}()
	return f
}

// watch lists the objects and watches them from then on.
func (b *bench) watch(ctx context.Context, list client.ObjectList, f *follower, as func(client.Object) bool) (watch.Interface, error) {
	if err := b.client.List(ctx, list); err != nil {
		return nil, err
	}
	now := map[types.UID]bool{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok && b.counts(obj) {
			now[obj.GetUID()] = as(obj)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.is, f.yes = now, 0
	for _, is := range now {
		f.count(is, 1)
	}
	f.mu.Unlock()
	f.tell()
	return b.client.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
}

// counts says whether an object belongs to a counted volume. The extra volume of settled is
// not counted.
func (b *bench) counts(obj client.Object) bool {
	name := obj.GetName()
	if volume, ok := obj.(*corev1.PersistentVolume); ok {
		if volume.Spec.ClaimRef == nil {
			return false
		}
		name = volume.Spec.ClaimRef.Name
	}
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	return strings.HasPrefix(name, "v-") && err == nil && number < *countOf
}

func (f *follower) note(uid types.UID, deleted, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count(f.is[uid], -1)
	if deleted {
		delete(f.is, uid)
	} else {
		f.is[uid] = is
		f.count(is, 1)
	}
	f.tell()
}

func (f *follower) count(is bool, by int) {
	if is {
		f.yes += by
	}
}

func (f *follower) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// until waits until the counts are right, and returns the time since the start.
func (f *follower) until(began time.Time, right func(yes, all int) bool) time.Duration {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		yes, all := f.yes, len(f.is)
		f.mu.Unlock()
		if right(yes, all) {
			return time.Since(began)
		}
		select {
		case <-f.changed:
		case <-deadline:
			f.t.Fatalf("waited %s: %d of %d objects meet the condition", patience, yes, all)
		}
	}
}

func (b *bench) absent(obj client.Object) bool {
	return apierrors.IsNotFound(b.client.Get(b.ctx, client.ObjectKeyFromObject(obj), obj))
}

func (b *bench) await(obj client.Object, done func() bool) {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited %s for %s", patience, obj.GetName())
		}
	}
}

// process is a running operator with its settings in config/operator.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
}

var build = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(os.TempDir(), fmt.Sprintf("shared-volume-operator-%d", os.Getpid()))
	command := exec.Command("go", "build", "-ldflags", "-s -w", "-o", binary, "../../cmd")
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as in its image
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the operator: %w: %s", err, out)
	}
	return binary, nil
})

func (b *bench) start() *process {
	b.t.Helper()
	binary, err := build()
	b.must(err)
	b.t.Cleanup(func() { _ = os.Remove(binary) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	address := listener.Addr().String()
	b.must(listener.Close())
	log, err := os.Create(filepath.Join(b.t.TempDir(), "operator.log"))
	b.must(err)
	arguments := slices.Concat(b.wrapper, []string{binary, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=" + address})
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = slices.Concat(os.Environ(), b.environment, []string{"WATCH_NAMESPACE=", "POD_NAMESPACE=default", "GOGC=50", "GOMEMLIMIT=190MiB"}) // as in config/operator
	cmd.Stdout, cmd.Stderr = log, log
	b.must(cmd.Start())
	p := &process{t: b.t, cmd: cmd}
	b.t.Cleanup(p.stop)
	cluster := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	b.await(cluster, func() bool {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK && b.client.Get(b.ctx, client.ObjectKeyFromObject(cluster), cluster) == nil &&
			meta.IsStatusConditionTrue(cluster.Status.Conditions, storagev1.ConditionInstalled)
	})
	return p
}

func (p *process) stop() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
	}
}

func (p *process) resident() int    { return p.memory("VmRSS:") }
func (p *process) residentMax() int { return p.memory("VmHWM:") }

// memory returns a field of the process status, in MiB.
func (p *process) memory(field string) int {
	p.t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field {
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil {
				p.t.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	p.t.Fatalf("the status of the operator's process has no field %s", field)
	return 0
}

// audit reads the audit log of the API server from its present end.
type audit struct {
	t    *testing.T
	file *os.File
}

func openAudit(t *testing.T) *audit {
	t.Helper()
	path := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "audit.log")
	file, err := os.Open(path)
	if err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		t.Fatalf("reading the audit log of the API server, which tools/cluster writes beside the KUBECONFIG: %v", err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &audit{t: t, file: file}
}

// sharedVolumeResources are the resources of a SharedVolume, without events and the driver.
var sharedVolumeResources = map[string]bool{"sharedvolumes": true, "persistentvolumes": true, "persistentvolumeclaims": true}

// resourcesAndEvents are the resources of a SharedVolume, and events.
var resourcesAndEvents = map[string]bool{"sharedvolumes": true, "persistentvolumes": true, "persistentvolumeclaims": true, "events": true}

// written counts the writes of the operator by namespace and name. A SharedVolume and its
// claim have the same name.
type written map[types.NamespacedName]int

func (w written) total() (sum int) {
	for _, count := range w {
		sum += count
	}
	return sum
}

// median returns the sum of two medians: of the writes for a SharedVolume with its claim,
// and of the writes for a volume, which has no namespace.
func (w written) median() int {
	var claimed, volumes []int
	for name, count := range w {
		if name.Namespace == "" {
			volumes = append(volumes, count)
		} else {
			claimed = append(claimed, count)
		}
	}
	middle := 0
	for _, counts := range [][]int{claimed, volumes} {
		slices.Sort(counts)
		if len(counts) > 0 {
			middle += counts[len(counts)/2]
		}
	}
	return middle
}

// writes counts the writes of the operator to the resources since the last call.
func (a *audit) writes(resources map[string]bool) written {
	a.t.Helper()
	counted := written{}
	lines := bufio.NewReaderSize(a.file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the last line may be incomplete
			if _, err = a.file.Seek(-int64(len(line)), io.SeekCurrent); err != nil {
				a.t.Fatalf("reading the audit log: %v", err)
			}
			return counted
		}
		var entry struct {
			Stage, Verb, UserAgent string
			ObjectRef              struct{ Resource, Namespace, Name string }
		}
		if err == nil {
			err = json.Unmarshal(line, &entry)
		}
		if err != nil {
			a.t.Fatalf("reading the audit log: %v", err)
		}
		write := entry.Verb != "get" && entry.Verb != "list" && entry.Verb != "watch"
		if write && entry.Stage == "ResponseComplete" && resources[entry.ObjectRef.Resource] && strings.HasPrefix(entry.UserAgent, "shared-volume-operator") {
			counted[types.NamespacedName{Namespace: entry.ObjectRef.Namespace, Name: entry.ObjectRef.Name}]++
		}
	}
}
