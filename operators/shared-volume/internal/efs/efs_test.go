package efs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs"
	"asterism.dev/operators/shared-volume/internal/efs/efstest"
)

func init() { log.SetLogger(logr.Discard()) }

var account = storagev1.AWS{Region: "eu-central-1"}

// newOwner returns the UID of an owner.
func newOwner() string { return fmt.Sprint("owner-", rand.Int64()) }

// start returns a server, and an access point of a new file system.
func start(t *testing.T) (*efstest.Proxy, efs.AccessPoint) {
	t.Helper()
	proxy := efstest.Start(t)
	return proxy, efs.AccessPoint{
		FileSystem: proxy.NewFileSystem(t), Cluster: "cluster", NamespaceUID: "namespace", OwnerUID: newOwner(),
		Owner: "team-a/images", Path: "/asterism/team-a/images", Permissions: "0700", UID: 1_000_000_007, GID: 1_000_000_008, Max: 10,
	}
}

// of returns another access point of the file system.
func of(point efs.AccessPoint, namespace, name string) efs.AccessPoint {
	point.NamespaceUID, point.OwnerUID, point.Owner = namespace, namespace+name, namespace+"/"+name
	point.Path = "/asterism/" + namespace + "/" + name
	return point
}

func mustEnsure(t *testing.T, c *efs.Connector, point efs.AccessPoint, known string) string {
	t.Helper()
	id, err := c.Ensure(t.Context(), account, point, known)
	if err != nil {
		t.Fatalf("%s: %v", point.Owner, err)
	}
	return id
}

func TestAccessPointIsCreatedAsDescribed(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	id := mustEnsure(t, c, point, "")
	if calls := proxy.Calls(); !slices.Equal(calls, []string{"DescribeAccessPoints", "CreateAccessPoint"}) {
		t.Errorf("a creation makes the calls %v", calls)
	}
	found := proxy.Points(t, point.FileSystem)
	if len(found) != 1 {
		t.Fatalf("the file system has %d access points", len(found))
	}
	p := found[0]
	info := p.RootDirectory.CreationInfo
	got := fmt.Sprint(*p.AccessPointId, *p.PosixUser.Uid, *p.PosixUser.Gid, *p.RootDirectory.Path, *info.OwnerUid, *info.OwnerGid, *info.Permissions)
	if want := fmt.Sprint(id, point.UID, point.GID, point.Path, point.UID, point.GID, "0700"); got != want {
		t.Errorf("the access point is %s, want %s", got, want)
	}
	if efstest.Tag(p, "asterism.dev/owner-uid") != point.OwnerUID || efstest.Tag(p, "asterism.dev/owner") != "team-a/images" || efstest.Tag(p, "asterism.dev/cluster") != "cluster" {
		t.Errorf("its tags are %v", p.Tags)
	}
	proxy.Fail(nil)
	if again := mustEnsure(t, c, point, id); again != id || !slices.Equal(proxy.Calls(), []string{"DescribeAccessPoints"}) {
		t.Errorf("a check of %s finds %s with the calls %v", id, again, proxy.Calls())
	}
	if again := mustEnsure(t, c, point, ""); again != id {
		t.Errorf("without a status, %s is not found again, but %s", id, again)
	}
}

// TestEveryCallMayFail while an access point is created and removed: once, so that the SDK
// tries again, or three times, so that the stage does. The cases wait most of their time.
func TestEveryCallMayFail(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for _, fault := range []efstest.Fault{efstest.Lost, efstest.Throttled, efstest.Failed, efstest.Denied} {
		for n := 1; n <= 5; n++ {
			for _, times := range []int{1, 3} {
				group.Go(func() {
					if problem := survive(t, fault, n, times); problem != "" {
						t.Errorf("%s, %d times from call %d: %s", fault, times, n, problem)
					}
				})
			}
		}
	}
	group.Wait()
}

func survive(t *testing.T, fault efstest.Fault, n, times int) string {
	t.Helper()
	proxy, point := start(t)
	faults := 0
	proxy.Fail(func(call int, _ string) efstest.Fault {
		if call < n || faults >= times {
			return efstest.None
		}
		faults++
		return fault
	})
	c, id := proxy.Connector(t), ""
	ensure := func() (err error) { id, err = c.Ensure(t.Context(), account, point, id); return err }
	remove := func() error { return c.Remove(t.Context(), account, point, id, unused) }
	if !succeeds(ensure) {
		return "it is not created"
	}
	if found := proxy.Points(t, point.FileSystem); len(found) != 1 || *found[0].AccessPointId != id {
		return fmt.Sprintf("%s was created, and EFS has %d access points", id, len(found))
	}
	for _, call := range []func() error{ensure, remove, remove} { // the second removal after a crash
		if !succeeds(call) {
			return "it is not checked or not removed"
		}
	}
	if found := proxy.Points(t, point.FileSystem); len(found) != 0 || faults != times {
		return fmt.Sprintf("EFS still has %d access points, after %d faults", len(found), faults)
	}
	return ""
}

func succeeds(call func() error) bool {
	for range 10 {
		if call() == nil {
			return true
		}
	}
	return false
}

// TestMeanings: a condition has the code, the missing right or the quota, and nothing of the
// text of AWS, which names the account.
func TestMeanings(t *testing.T) {
	t.Parallel()
	for fault, want := range map[efstest.Fault][]string{
		efstest.Denied:     {storagev1.ReasonAWSDenied, "AccessDeniedException: ", "elasticfilesystem:CreateAccessPoint"},
		efstest.Unsigned:   {storagev1.ReasonAWSDenied, "UnrecognizedClientException: ", "credentials"},
		efstest.Full:       {storagev1.ReasonAWSLimitReached, "AccessPointLimitExceeded: ", "quota"},
		efstest.Missing:    {storagev1.ReasonAWSRefused, "FileSystemNotFound: ", "does not exist in this region"},
		efstest.Throttled:  {storagev1.ReasonAWSThrottled, "ThrottlingException: ", "too many calls"},
		efstest.Failed:     {storagev1.ReasonAWSUnreachable, "InternalServerError: ", "tries again"},
		efstest.Lost:       {storagev1.ReasonAWSUnreachable, "does not answer"},
		efstest.BadRequest: {storagev1.ReasonAWSRefused, "BadRequest: ", "operator's log"},
	} {
		proxy, point := start(t)
		proxy.Fail(func(_ int, action string) efstest.Fault {
			if action == "CreateAccessPoint" {
				return fault
			}
			return efstest.None
		})
		_, err := proxy.Connector(t).Ensure(t.Context(), account, point, "")
		if engine.Reason(err) != want[0] {
			t.Errorf("%s: the reason is %s", fault, engine.Reason(err))
			continue
		}
		for _, text := range want[1:] {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q lacks %q", fault, err, text)
			}
		}
		if strings.Contains(err.Error(), "arn:") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %q", fault, err)
		}
	}
}

func TestForeignAccessPointIsAConflict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*efs.AccessPoint)
		conflict bool
	}{
		"another cluster has the same object":    {func(a *efs.AccessPoint) { a.Cluster = "other" }, true},
		"another namespace has the directory":    {func(a *efs.AccessPoint) { a.NamespaceUID, a.OwnerUID = "other", "other" }, true},
		"another namespace has a part of it":     {func(a *efs.AccessPoint) { a.NamespaceUID, a.OwnerUID, a.Path = "other", "other", a.Path+"/x" }, true},
		"an administrator has a directory above": {func(a *efs.AccessPoint) { a.NamespaceUID, a.OwnerUID, a.Path = "other", "other", "/asterism" }, false},
		"a directory with the same beginning":    {func(a *efs.AccessPoint) { a.NamespaceUID, a.OwnerUID, a.Path = "other", "other", a.Path+"2" }, false},
	} {
		proxy, point := start(t)
		connector, foreign := proxy.Connector(t), point
		c.change(&foreign)
		mustEnsure(t, connector, foreign, "")
		_, err := connector.Ensure(t.Context(), account, point, "")
		if (engine.Reason(err) == engine.ReasonConflict) != c.conflict {
			t.Errorf("%s: %v", name, err)
		}
		if foreign.OwnerUID == point.OwnerUID && engine.Reason(connector.Remove(t.Context(), account, point, "", unused)) != engine.ReasonConflict {
			t.Errorf("%s: it is deleted", name)
		}
		if !c.conflict {
			continue
		}
		if found := proxy.Points(t, point.FileSystem); len(found) != 1 {
			t.Errorf("%s: EFS has %d access points", name, len(found))
		}
	}
}

// TestRemovalFromAMissingFileSystem ends: an access point whose ID is known is left behind,
// because the file system may be in another region.
func TestRemovalFromAMissingFileSystem(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	id := mustEnsure(t, c, point, "")
	proxy.DeleteFileSystem(t, point.FileSystem)
	if err := c.Remove(t.Context(), account, point, "", unused); err != nil {
		t.Errorf("an access point without an ID: %v", err)
	}
	if err := c.Remove(t.Context(), account, point, id, unused); err == nil || !strings.HasPrefix(err.Error(), "left behind: access point "+id+": FileSystemNotFound: ") {
		t.Errorf("access point %s: %v", id, err)
	}
}

// TestUnavailableAccessPointHasAnID, so that it is not searched again and can be deleted.
func TestUnavailableAccessPointHasAnID(t *testing.T) {
	t.Parallel()
	for state, reason := range map[efstest.Fault]string{efstest.Creating: engine.ReasonProgressing, efstest.Broken: storagev1.ReasonAWSRefused} {
		proxy, point := start(t)
		c := proxy.Connector(t)
		proxy.Fail(func(int, string) efstest.Fault { return state })
		id, err := c.Ensure(t.Context(), account, point, "")
		if found := proxy.Points(t, point.FileSystem); engine.Reason(err) != reason || len(found) != 1 || id != *found[0].AccessPointId {
			t.Errorf("%s: %q, %v", state, id, err)
		}
		if again, err := c.Ensure(t.Context(), account, point, id); again != id || engine.Reason(err) != reason || len(proxy.Calls()) != 3 {
			t.Errorf("%s: %q, %v, with the calls %v", state, again, err, proxy.Calls())
		}
	}
}

// TestRefusalIsNotRepeated: what only a person can correct causes no calls for a while, but a
// changed account does.
func TestRefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	proxy.Fail(func(int, string) efstest.Fault { return efstest.Denied })
	c := proxy.Connector(t)
	c.Pause = time.Hour
	for range 3 {
		if _, err := c.Ensure(t.Context(), account, point, ""); engine.Reason(err) != storagev1.ReasonAWSDenied {
			t.Errorf("%v", err)
		}
	}
	if calls := proxy.Calls(); len(calls) != 1 {
		t.Errorf("the calls are %v", calls)
	}
	proxy.Fail(nil)
	mustEnsure(t, c, of(point, "full", "first"), "")
	second := of(point, "full", "second")
	second.Max = 1
	for range 3 {
		if _, err := c.Ensure(t.Context(), account, second, ""); engine.Reason(err) != storagev1.ReasonLimitReached {
			t.Errorf("%v", err)
		}
	}
	if calls := proxy.Calls(); len(calls) != 3 {
		t.Errorf("with a full namespace, the calls are %v", calls)
	}
	if _, err := c.Ensure(t.Context(), storagev1.AWS{Region: "eu-central-2"}, point, ""); err != nil {
		t.Error(err)
	}
}

// TestThrottledCallDelaysNoOther: after a throttled call, a call of another object takes no
// longer than that of a connector whose calls were never throttled, at the same time. Of the
// creations, the median counts: the machine may pause one of the two.
func TestThrottledCallDelaysNoOther(t *testing.T) {
	t.Parallel()
	throttled, calm := newCreations(t), newCreations(t)
	throttled.proxy.Fail(func(n int, _ string) efstest.Fault {
		if n <= 9 {
			return efstest.Throttled
		}
		return efstest.None
	})
	for range 3 {
		if _, err := throttled.connector.Ensure(t.Context(), account, throttled.point, ""); engine.Reason(err) != storagev1.ReasonAWSThrottled {
			t.Errorf("%v", err)
		}
	}
	var group sync.WaitGroup
	group.Go(throttled.run)
	group.Go(calm.run)
	group.Wait()
	if took, otherwise := throttled.median(), calm.median(); took > max(100*time.Millisecond, 3*otherwise) {
		t.Errorf("a creation takes %s after a throttled call, and %s otherwise", took, otherwise)
	}
}

// creations measures how long each of a number of creations takes.
type creations struct {
	t         *testing.T
	proxy     *efstest.Proxy
	connector *efs.Connector
	point     efs.AccessPoint
	took      []time.Duration
}

func newCreations(t *testing.T) *creations {
	t.Helper()
	proxy, point := start(t)
	return &creations{t: t, proxy: proxy, connector: proxy.Connector(t), point: point}
}

func (c *creations) run() {
	for i := range 20 {
		began := time.Now()
		if _, err := c.connector.Ensure(c.t.Context(), account, of(c.point, fmt.Sprint("namespace-", i), "images"), ""); err != nil {
			c.t.Errorf("%d: %v", i, err)
		}
		c.took = append(c.took, time.Since(began))
	}
}

func (c *creations) median() time.Duration {
	slices.Sort(c.took)
	return c.took[len(c.took)/2]
}

// TestLimitIsExact although all SharedVolumes of the namespace are created at once.
func TestLimitIsExact(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	var group sync.WaitGroup
	reasons := make([]string, 8)
	for i := range reasons {
		group.Go(func() {
			one := of(point, "greedy", fmt.Sprint(i))
			one.Max = 3
			_, err := c.Ensure(t.Context(), account, one, "")
			reasons[i] = engine.Reason(err)
		})
	}
	group.Wait()
	slices.Sort(reasons)
	if want := append(slices.Repeat([]string{""}, 3), slices.Repeat([]string{storagev1.ReasonLimitReached}, 5)...); !slices.Equal(reasons, want) {
		t.Errorf("the outcomes are %q", reasons)
	}
	mustEnsure(t, c, of(point, "modest", "a"), "")
}

func TestSearchReadsEveryPage(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	var last string
	for i := range 205 {
		one := of(point, fmt.Sprint("namespace-", i), "images")
		last = mustEnsure(t, c, one, "")
	}
	if again := mustEnsure(t, c, of(point, "namespace-204", "images"), ""); again != last {
		t.Errorf("%s is found as %s", last, again)
	}
	if err := c.Remove(t.Context(), account, of(point, "namespace-204", "images"), "", unused); err != nil || len(proxy.Points(t, point.FileSystem)) != 204 {
		t.Errorf("an access point of the last page is not removed: %v", err)
	}
}

// expiring is a context that can be cancelled, and then says that its deadline has passed.
type expiring struct{ context.Context }

func (e expiring) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestSlowSearchIsExplained: AWS answers, but the list is too long for the time of one attempt.
func TestSlowSearchIsExplained(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	for i := range 101 {
		mustEnsure(t, c, of(point, fmt.Sprint("namespace-", i), "images"), "")
	}
	for slow, want := range map[int]string{
		1: "elasticfilesystem:DescribeAccessPoints: AWS does not answer: ",
		2: "file system " + point.FileSystem + " has many access points, and AWS listed only the first 100 of them ",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		proxy.Fail(func(call int, _ string) efstest.Fault {
			if call < slow {
				return efstest.None
			}
			cancel()
			return efstest.Lost
		})
		_, err := c.Ensure(expiring{ctx}, account, point, "")
		if engine.Reason(err) != storagev1.ReasonAWSUnreachable || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("call %d is slow: %v", slow, err)
		}
	}
}

// TestUsedAccessPointIsNotDeleted, also if its ID was not known before.
func TestUsedAccessPointIsNotDeleted(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	id := mustEnsure(t, c, point, "")
	for _, known := range []string{id, "", "fsap-00000001"} {
		asked := ""
		inUse := engine.Wait("it is in use")
		err := c.Remove(t.Context(), account, point, known, func(id string) error { asked = id; return inUse })
		if !errors.Is(err, inUse) || asked != id || len(proxy.Points(t, point.FileSystem)) != 1 {
			t.Errorf("known as %q: %v, asked for %q", known, err, asked)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	_, err := (&efs.Connector{Endpoint: proxy.URL, Folder: t.TempDir()}).Ensure(t.Context(), account, point, "")
	if engine.Reason(err) != storagev1.ReasonAWSNotConfigured || !strings.Contains(err.Error(), "create Secret asterism-shared-volume-aws") {
		t.Errorf("without a Secret: %v", err)
	}
	role := storagev1.AWS{Region: "eu-central-1", RoleARN: "arn:aws:iam::123456789012:role/asterism"}
	if _, err := proxy.Connector(t).Ensure(t.Context(), role, point, ""); err != nil {
		t.Errorf("with a role: %v", err)
	}
	if calls := proxy.Calls(); calls[0] != "AssumeRoleWithWebIdentity" {
		t.Errorf("with a role, the calls are %v", calls)
	}
}

// TestRefusedRole: the remedy is the trust policy of the role, and no right for EFS.
func TestRefusedRole(t *testing.T) {
	t.Parallel()
	for _, fault := range []efstest.Fault{efstest.Untrusted, efstest.Rejected} {
		proxy, point := start(t)
		proxy.Fail(func(int, string) efstest.Fault { return fault })
		role := storagev1.AWS{Region: "eu-central-1", RoleARN: "arn:aws:iam::123456789012:role/asterism"}
		_, err := proxy.Connector(t).Ensure(t.Context(), role, point, "")
		if engine.Reason(err) != storagev1.ReasonAWSDenied || !strings.Contains(err.Error(), "trust policy of spec.aws.roleARN") || strings.Contains(err.Error(), "arn:") {
			t.Errorf("%s: %v", fault, err)
		}
	}
}

// TestPolicyHasTheCalls compares the IAM policy with the calls that the operator makes.
func TestPolicyHasTheCalls(t *testing.T) {
	t.Parallel()
	proxy, point := start(t)
	c := proxy.Connector(t)
	id := mustEnsure(t, c, point, "")
	if err := c.Remove(t.Context(), account, point, id, unused); err != nil {
		t.Fatal(err)
	}
	comparePolicy(t, "policy.json", proxy.Calls())
}

// comparePolicy compares a policy with calls. EFS checks further rights in the creation of
// objects with tags, and of mount targets.
func comparePolicy(t *testing.T, file string, calls []string) {
	t.Helper()
	made := map[string]bool{"elasticfilesystem:TagResource": true}
	for _, call := range calls {
		made["elasticfilesystem:"+call] = true
		if call == "CreateMountTarget" {
			for _, action := range []string{"DescribeSubnets", "DescribeNetworkInterfaces", "CreateNetworkInterface", "DeleteNetworkInterface"} {
				made["ec2:"+action] = true
			}
		}
	}
	content, err := os.ReadFile(filepath.Join("../../config/aws", file))
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct {
			Action    []string
			Condition map[string]map[string]string
		}
	}
	if err := json.Unmarshal(content, &policy); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, statement := range policy.Statement {
		for _, action := range statement.Action {
			allowed[action] = true
			if action == "elasticfilesystem:TagResource" && !slices.Contains(calls, statement.Condition["StringEquals"]["elasticfilesystem:CreateAction"]) {
				t.Errorf("%s lets a stolen key tag what it has not created, and so delete it: %v", file, statement.Condition)
			}
		}
	}
	if !maps.Equal(allowed, made) {
		t.Errorf("%s allows %v, and the operator calls %v", file, allowed, made)
	}
}
