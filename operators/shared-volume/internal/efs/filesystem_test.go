package efs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	awsefs "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs"
	"asterism.dev/operators/shared-volume/internal/efs/efstest"
)

// newFileSystem returns a managed file system with two mount targets.
func newFileSystem() efs.FileSystem {
	managed := &storagev1.ManagedFileSystem{PerformanceMode: "generalPurpose", ThroughputMode: "elastic", Encryption: storagev1.SwitchEnabled, Backup: storagev1.SwitchEnabled}
	for _, subnet := range efstest.Subnets() {
		managed.MountTargets = append(managed.MountTargets, storagev1.MountTarget{SubnetID: subnet})
	}
	return efs.FileSystem{Cluster: "cluster", UID: newOwner(), Name: "shared", Spec: storagev1.SharedFileSystemSpec{Managed: managed}}
}

// fileSystems returns the file systems of the owner.
func fileSystems(t *testing.T, proxy *efstest.Proxy, f efs.FileSystem) []types.FileSystemDescription {
	t.Helper()
	out, err := proxy.Direct().DescribeFileSystems(t.Context(), &awsefs.DescribeFileSystemsInput{CreationToken: new("asterism-" + f.UID)})
	var missing *types.FileSystemNotFound
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return out.FileSystems
}

func unused(string) error { return nil }

func TestFileSystemSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for _, fault := range []efstest.Fault{efstest.Lost, efstest.Throttled, efstest.Failed} {
		for n := 1; n <= 12; n++ {
			group.Go(func() {
				if problem := surviveFileSystem(t, fault, n); problem != "" {
					t.Errorf("%s from call %d: %s", fault, n, problem)
				}
			})
		}
	}
	group.Wait()
}

func surviveFileSystem(t *testing.T, fault efstest.Fault, n int) string {
	t.Helper()
	proxy, f := efstest.Start(t), newFileSystem()
	faults := 0
	proxy.Fail(func(call int, _ string) efstest.Fault {
		if call < n || faults >= 3 {
			return efstest.None
		}
		faults++
		return fault
	})
	c := proxy.Connector(t)
	var state efs.FileSystemState
	if !succeeds(func() (err error) { state, err = c.EnsureFileSystem(t.Context(), account, f); return err }) {
		return "it is not created"
	}
	if found := fileSystems(t, proxy, f); len(found) != 1 || *found[0].FileSystemId != state.FileSystemID || state.State != "available" || len(state.MountTargets) != 2 {
		return fmt.Sprintf("%d file systems exist; the state is %v", len(found), state)
	}
	remove := func() error { return c.RemoveFileSystem(t.Context(), account, f, unused) }
	for range 2 { // the second time after a crash
		if !succeeds(remove) {
			return "it is not removed"
		}
	}
	if found := fileSystems(t, proxy, f); len(found) != 0 || faults != 3 {
		return fmt.Sprintf("%d file systems remain after %d faults", len(found), faults)
	}
	return ""
}

// TestExistingFileSystemIsOnlyRead, whatever tags it has.
func TestExistingFileSystemIsOnlyRead(t *testing.T) {
	t.Parallel()
	proxy, f := efstest.Start(t), newFileSystem()
	c := proxy.Connector(t)
	made, err := proxy.Direct().CreateFileSystem(t.Context(), &awsefs.CreateFileSystemInput{CreationToken: &f.UID})
	if err != nil {
		t.Fatal(err)
	}
	f.Spec = storagev1.SharedFileSystemSpec{FileSystemID: storagev1.FileSystemID(*made.FileSystemId)}
	state, err := c.EnsureFileSystem(t.Context(), account, f)
	if err != nil || state.FileSystemID != *made.FileSystemId || state.State != "available" {
		t.Errorf("%v, %v", state, err)
	}
	if calls := proxy.Calls(); !slices.Equal(calls, []string{"DescribeFileSystems", "DescribeMountTargets"}) {
		t.Errorf("the calls are %v", calls)
	}
	f.Spec.FileSystemID = "fs-00000000"
	if _, err := c.EnsureFileSystem(t.Context(), account, f); engine.Reason(err) != storagev1.ReasonAWSRefused || !strings.Contains(err.Error(), "fs-00000000 does not exist") {
		t.Errorf("a missing file system: %v", err)
	}
}

// TestKnownFileSystemIsNotReplaced where it does not exist, such as in another region.
func TestKnownFileSystemIsNotReplaced(t *testing.T) {
	t.Parallel()
	proxy, f := efstest.Start(t), newFileSystem()
	f.Known = "fs-00000001"
	c := proxy.Connector(t)
	if _, err := c.EnsureFileSystem(t.Context(), account, f); engine.Reason(err) != storagev1.ReasonAWSRefused || !strings.HasPrefix(err.Error(), "file system fs-00000001 is not in this region: correct spec.aws") {
		t.Errorf("%v", err)
	}
	if len(fileSystems(t, proxy, f)) != 0 {
		t.Error("another file system is created")
	}
	f.Known = ""
	if !succeeds(func() error { _, err := c.EnsureFileSystem(t.Context(), account, f); return err }) {
		t.Fatal("it is not created")
	}
	f.Known = "fs-00000001" // and now there is one with the token
	if _, err := c.EnsureFileSystem(t.Context(), account, f); engine.Reason(err) != storagev1.ReasonAWSRefused {
		t.Errorf("%v", err)
	}
	if err := c.RemoveFileSystem(t.Context(), account, f, unused); err == nil || !strings.HasPrefix(err.Error(), "left behind: file system fs-00000001 is not in this region") || len(fileSystems(t, proxy, f)) != 1 {
		t.Errorf("its deletion: %v", err)
	}
}

func TestForeignFileSystemIsAConflict(t *testing.T) {
	t.Parallel()
	proxy, f := efstest.Start(t), newFileSystem()
	c := proxy.Connector(t)
	if _, err := proxy.Direct().CreateFileSystem(t.Context(), &awsefs.CreateFileSystemInput{CreationToken: new("asterism-" + f.UID)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.EnsureFileSystem(t.Context(), account, f); engine.Reason(err) != engine.ReasonConflict {
		t.Errorf("%v", err)
	}
	if err := c.RemoveFileSystem(t.Context(), account, f, unused); engine.Reason(err) != engine.ReasonConflict || len(fileSystems(t, proxy, f)) != 1 {
		t.Errorf("it is deleted: %v", err)
	}
}

// TestUsedFileSystemIsNotDeleted, and its mount targets stay. The calls of its life are those
// of the policy.
func TestUsedFileSystemIsNotDeleted(t *testing.T) {
	t.Parallel()
	proxy, f := efstest.Start(t), newFileSystem()
	c := proxy.Connector(t)
	if !succeeds(func() error { _, err := c.EnsureFileSystem(t.Context(), account, f); return err }) {
		t.Fatal("it is not created")
	}
	inUse := engine.Wait("it is in use")
	if err := c.RemoveFileSystem(t.Context(), account, f, func(string) error { return inUse }); !errors.Is(err, inUse) {
		t.Errorf("%v", err)
	}
	if slices.ContainsFunc(proxy.Calls(), func(call string) bool { return strings.HasPrefix(call, "Delete") }) {
		t.Errorf("the calls are %v", proxy.Calls())
	}
	if !succeeds(func() error { return c.RemoveFileSystem(t.Context(), account, f, unused) }) {
		t.Error("it is not removed")
	}
	comparePolicy(t, "file-systems.json", proxy.Calls())
}
