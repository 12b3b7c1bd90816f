//go:build bench

package bench

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs/efstest"
)

const (
	// page is the number of access points in an answer of EFS.
	page = 100
	// managedRun tells the names of these SharedVolumes from those of other runs.
	managedRun = 9000
)

// managed is a bench whose SharedVolumes get access points from a server of EFS.
type managed struct {
	*bench
	efs        *efstest.Proxy
	fileSystem storagev1.FileSystemID
	seen       int // calls
}

// TestManagedAccessPoints counts the calls to EFS of SharedVolumes without accessPointID: until they are
// Ready, at rest, after a restart of the operator, and for their deletion. The suite counts those of one
// SharedVolume, so this bench runs only when the clients are measured as well.
func TestManagedAccessPoints(t *testing.T) {
	if !*both {
		t.Skip("-both=false")
	}
	m := newManaged(t)
	process := m.start()
	defer process.stop()
	claims := m.follow(&corev1.PersistentVolumeClaimList{}, bound)
	defer claims.stop()
	began := m.begin(func(i int) error { return m.client.Create(m.ctx, m.sharedVolume(i)) })
	ready := claims.until(began, allBound)
	m.whenShared(allBound)
	created := m.calls()
	m.expect("at rest", m.rested(), map[string]int{})
	process.stop()
	audit := openAudit(t)
	process = m.start()
	defer process.stop()
	again := m.rested()
	if writes := audit.writes(sharedVolumeResources).total(); writes > 0 {
		t.Errorf("the operator made %d writes for unchanged SharedVolumes after a restart, want 0", writes)
	}
	began = m.begin(func(i int) error { return m.client.Delete(m.ctx, m.sharedVolume(i)) })
	m.whenShared(none)
	gone := time.Since(began)
	deleted := m.calls()
	t.Logf("%d managed access points: all Bound after %.1f s, gone after %.1f s; calls until Ready: %v, after a restart: %v, for the deletion: %v; %d MiB at most",
		*countOf, ready.Seconds(), gone.Seconds(), created, again, deleted, process.residentMax())
	m.check(created, again, deleted)
}

// check asserts the numbers of calls: one access point for each SharedVolume, one look at each after a
// restart, and one deletion. Before an access point is created, it is searched in every page.
func (m *managed) check(created, again, deleted map[string]int) {
	m.t.Helper()
	pages := *countOf/page + 1
	if got := created["DescribeAccessPoints"]; got > *countOf*(pages+1) {
		m.t.Errorf("%d searches until all are Ready, want at most %d for each", got, pages+1)
	}
	delete(created, "DescribeAccessPoints")
	m.expect("until Ready", created, map[string]int{"CreateAccessPoint": *countOf})
	m.expect("after a restart", again, map[string]int{"DescribeAccessPoints": *countOf})
	if got := deleted["DescribeAccessPoints"]; got > 2**countOf {
		m.t.Errorf("%d looks for the deletion, want at most two for each", got)
	}
	delete(deleted, "DescribeAccessPoints")
	m.expect("for the deletion", deleted, map[string]int{"DeleteAccessPoint": *countOf})
	if left := m.efs.Points(m.t, string(m.fileSystem)); len(left) > 0 {
		m.t.Errorf("%d access points are left", len(left))
	}
}

func (m *managed) expect(when string, got, want map[string]int) {
	m.t.Helper()
	if !maps.Equal(got, want) {
		m.t.Errorf("calls %s: %v, want %v", when, got, want)
	}
}

// newManaged lets the operator reach a server of EFS with an access key, and grants managed access
// points to the namespaces.
func newManaged(t *testing.T) *managed {
	t.Helper()
	m := &managed{bench: newBench(t), efs: efstest.Start(t)}
	m.fileSystem = storagev1.FileSystemID(m.efs.NewFileSystem(t))
	folder := t.TempDir()
	for name, text := range map[string]string{"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret"} {
		m.must(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	m.environment = []string{"AWS_ENDPOINT_URL=" + m.efs.URL}
	m.wrapper = []string{"unshare", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none /run && mkdir -p "$1" && cp "$0"/* "$1" && shift && exec "$@"`, folder, "/run/secrets/asterism.dev/aws"}
	policy := &storagev1.SharedVolumePolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	policy.Spec.Namespaces.Names = m.namespaces
	policy.Spec.FileSystems = []storagev1.FileSystemGrant{{
		FileSystemID: m.fileSystem, AccessPoints: storagev1.AccessPointsManaged, Access: storagev1.AccessReadWrite,
		Managed: &storagev1.ManagedAccessPoints{MaxPerNamespace: int32(*countOf / *namespaces + 1)},
	}}
	m.must(m.client.Create(m.ctx, policy))
	t.Cleanup(func() { m.must(m.client.Delete(m.ctx, policy)) })
	m.region(`{"region":"eu-central-1"}`)
	t.Cleanup(func() { m.region("null") })
	return m
}

func (m *managed) region(aws string) {
	m.t.Helper()
	driver := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
	m.must(m.client.Patch(m.ctx, driver, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"aws":`+aws+`}}`))))
}

func (m *managed) sharedVolume(i int) *storagev1.SharedVolume {
	cr := m.shared(managedRun, i)
	cr.Spec.FileSystemID, cr.Spec.AccessPointID = m.fileSystem, ""
	return cr
}

// rested waits until the operator has neither written nor called for quietFor, and counts its calls
// until then.
func (m *managed) rested() map[string]int {
	m.t.Helper()
	counted := map[string]int{}
	for more := true; more; {
		m.quiet()
		calls := m.calls()
		for action, count := range calls {
			counted[action] += count
		}
		more = len(calls) > 0
	}
	return counted
}

// calls counts the calls since the last time, by their action.
func (m *managed) calls() map[string]int {
	all, counted := m.efs.Calls(), map[string]int{}
	for _, action := range all[m.seen:] {
		counted[action]++
	}
	m.seen = len(all)
	return counted
}
