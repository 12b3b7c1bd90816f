package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// server is a namespace of a real API server with a ControlPlane and a NovaCell.
type server struct {
	client.Client
	namespace string
	plane     *metav1alpha1.ControlPlane
	cell      *novav1.NovaCell
}

func newServer(t *testing.T) *server {
	t.Helper()
	folders, err := filepath.Glob("../../../operators/*/config/crd")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.InstallCRDs(t, folders...)
	objects, err := client.New(enginetest.Config(t), client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Client: objects, namespace: enginetest.Namespace(t), plane: &metav1alpha1.ControlPlane{}, cell: &novav1.NovaCell{}}
	s.create(t, "../../../operators/meta/config/samples/controlplane.yaml", s.plane)
	s.create(t, "../../../operators/nova/config/samples/novacell.yaml", s.cell)
	return s
}

// create creates the first object of a file.
func (s *server) create(t *testing.T, path string, into client.Object) {
	t.Helper()
	for _, document := range documents(t, path) {
		kind, err := s.GroupVersionKindFor(into)
		if err != nil {
			t.Fatal(err)
		}
		if document.GroupVersionKind() != kind {
			continue
		}
		document.SetNamespace(s.namespace)
		if err := s.Create(context.Background(), document); err != nil {
			t.Fatal(err)
		}
		if err := s.Get(context.Background(), client.ObjectKeyFromObject(document), into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s has no such object", path)
}

func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// report sets Ready of both objects, as their operators do.
func (s *server) report(t *testing.T, status metav1.ConditionStatus, message string) {
	t.Helper()
	for _, o := range []interface {
		client.Object
		Common() *commonv1.Status
	}{s.plane, s.cell} {
		before := client.MergeFrom(o.DeepCopyObject().(client.Object))
		o.Common().ObservedGeneration = o.GetGeneration()
		o.Common().Conditions = []metav1.Condition{{
			Type: commonv1.ConditionReady, Status: status, Reason: "Reported", Message: message,
			LastTransitionTime: metav1.Now(), ObservedGeneration: o.GetGeneration(),
		}}
		if err := s.Status().Patch(context.Background(), o, before); err != nil {
			t.Fatal(err)
		}
	}
}

// environment connects as Main does.
func (s *server) environment(out, errOut io.Writer) *environment {
	flags := genericclioptions.NewConfigFlags(true)
	return &environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut},
		flags:     flags, now: time.Now, version: "test", style: func() tree.Style { return tree.Style{} },
		connect: func() (*cluster.Cluster, error) { return cluster.Connect(flags) },
	}
}

// run runs a command in the namespace.
func (s *server) run(t *testing.T, arguments ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append(arguments, "-n", s.namespace), s.environment(&stdout, &stderr))
	return code, stdout.String(), stderr.String()
}

// TestAPIServer runs the commands against the API server of KUBECONFIG.
func TestAPIServer(t *testing.T) {
	s := newServer(t)
	code, out, errOut := s.run(t, "status")
	// An object that is older than some seconds must have a status, and may be so old on a slow machine.
	young, old := "s ago, no status yet", "no status: check that its operator runs"
	if code != codeNotReady || !strings.Contains(out, young) && (time.Since(s.plane.CreationTimestamp.Time) < 15*time.Second || !strings.Contains(out, old)) {
		t.Errorf("before the operators: %d\n%s\n%s", code, out, errOut)
	}
	s.report(t, metav1.ConditionFalse, "Secret mariadb-admin does not exist")
	for _, arguments := range [][]string{{"status"}, {"cells"}, {"explain", "controlplane/" + s.plane.Name}} {
		if _, out, errOut := s.run(t, arguments...); !strings.Contains(out, "Secret mariadb-admin does not exist") || errOut != "" {
			t.Errorf("%v: %s\n%s", arguments, out, errOut)
		}
	}
	if code, _, errOut := s.run(t, "config", "view", "controlplane/"+s.plane.Name); code != codeError || !strings.Contains(errOut, "has no pods of its own") {
		t.Errorf("config view: %d %s", code, errOut)
	}
	s.createPeople(t)
	s.bind(t, "viewer", "view")
	s.bind(t, "editor", "edit")
	t.Run("watch", s.testWatch)
	t.Run("check", s.testCheck)
	t.Run("rights", s.testRights)
	t.Run("timeout", s.testTimeout)
	t.Run("restart", s.testRestart)
}

func (s *server) testWatch(t *testing.T) {
	out := &screen{}
	ctx, interrupt := context.WithCancel(context.Background())
	code := make(chan int)
	go func() { code <- run(ctx, []string{"status", "--watch", "-n", s.namespace}, s.environment(out, out)) }()
	out.await(t, "mariadb-admin", 2)
	s.report(t, metav1.ConditionTrue, "")
	out.await(t, "True", 2)
	interrupt()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d, want 0:\n%s", got, out.String())
	}
}

// testCheck: the namespace has a ControlPlane, and nothing that it names.
func (s *server) testCheck(t *testing.T) {
	s.check(t, codeNotReady, nil,
		"Kubernetes +ok +v1", "Kinds +ok", "Operators +failed +the operators: not found in namespace none", "Namespace +failed .* is not handed over to the operators",
		"Pod security +ok", "Secret/mariadb-admin +failed +mariadb-admin does not exist", "Service/mariadb +failed +mariadb does not exist")
}

// check checks lines of the output.
func (s *server) check(t *testing.T, wantCode int, arguments []string, lines ...string) {
	t.Helper()
	code, out, errOut := s.run(t, append([]string{"check", "--operator-namespaces", "none"}, arguments...)...)
	lacks := slices.DeleteFunc(lines, func(line string) bool { return regexp.MustCompile("(?m)^" + line).MatchString(out) })
	if code != wantCode || errOut != "" || len(lacks) > 0 {
		t.Errorf("check %v: exit code %d, without the lines %q\n%s\n%s", arguments, code, lacks, out, errOut)
	}
}

// testRestart: an editor of the namespace restarts a service, and a viewer does not.
func (s *server) testRestart(t *testing.T) {
	scheduler := &schedulerv1.NovaScheduler{}
	s.create(t, "../../../operators/nova-scheduler/config/samples/scheduler.yaml", scheduler)
	s.awaitRight(t, "editor", "patch", schedulerv1.GroupVersion.Group, "novaschedulers")
	s.awaitRight(t, "viewer", "list", schedulerv1.GroupVersion.Group, "novaschedulers")
	name := "novascheduler/" + scheduler.Name
	for _, test := range []struct {
		flag       string
		generation int64
	}{{"--dry-run=server", scheduler.Generation}, {"--dry-run=none", scheduler.Generation + 1}} {
		if code, out, errOut := s.run(t, "restart", name, test.flag, "--as", "editor"); code != 0 || !strings.HasPrefix(out, "NovaScheduler/"+scheduler.Name+" restarted") {
			t.Errorf("%s: %d\n%s\n%s", test.flag, code, out, errOut)
		}
		if err := s.Get(context.Background(), client.ObjectKeyFromObject(scheduler), scheduler); err != nil {
			t.Fatal(err)
		}
		if scheduler.Generation != test.generation || (scheduler.Spec.RestartTriggers[restartKey] == "") != (test.flag == "--dry-run=server") {
			t.Errorf("%s: generation %d, restartTriggers %v", test.flag, scheduler.Generation, scheduler.Spec.RestartTriggers)
		}
	}
	if code, _, errOut := s.run(t, "restart", name, "--as", "viewer"); code != codeError || !strings.Contains(errOut, "cannot be restarted") || !strings.Contains(errOut, "forbidden") {
		t.Errorf("restart with the role view: %d\n%s", code, errOut)
	}
}

// bind binds a role in the namespace.
func (s *server) bind(t *testing.T, user, role string) {
	t.Helper()
	if err := s.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}); err != nil {
		t.Fatal(err)
	}
}

// createPeople creates the roles of people.
func (s *server) createPeople(t *testing.T) {
	t.Helper()
	paths, err := filepath.Glob("../../../operators/*/config/rbac/people.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no roles of people: %v", err)
	}
	for _, path := range paths {
		for _, role := range documents(t, path) {
			if err := client.IgnoreAlreadyExists(s.Create(context.Background(), role)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// testRights runs the commands with the role view of Kubernetes in the namespace, and with no
// right. docs/cli.md has the rights that each command needs.
func (s *server) testRights(t *testing.T) {
	s.awaitRight(t, "viewer", "list", "nova.asterism.dev", "novas")
	s.awaitRight(t, "viewer", "list", "storage.asterism.dev", "sharedvolumes")
	for _, arguments := range [][]string{{"status"}, {"cells"}, {"explain", "novacell/" + s.cell.Name}} {
		if code, out, errOut := s.run(t, append(arguments, "--as", "viewer")...); code != 0 || errOut != "" {
			t.Errorf("%v with the role view: %d\n%s\n%s", arguments, code, out, errOut)
		}
	}
	lacks := s.unread(t, "--as", "viewer")
	lacks = slices.DeleteFunc(lacks, func(kind string) bool { return kind == "Route" || kind == "HTTPRoute" }) // served if another suite has run
	if !slices.Equal(lacks, []string{"RoleBinding", "Secret", "SharedFileSystem", "SharedVolumeDriver", "SharedVolumePolicy"}) {
		t.Errorf("with the role view, a report lacks %v", lacks)
	}
	s.check(t, codeNotReady, []string{"--as", "viewer"}, "Kinds +not checked +needs the right to list CustomResourceDefinitions", "Operators +not checked",
		"Namespace +not checked +needs the right to list RoleBindings", "Pod security +ok", "Secret/mariadb-admin +not checked", "Service/mariadb +failed")
	s.check(t, 0, []string{"--as", "nobody"}, "Kubernetes +ok", "Namespace +not checked", "Pod security +not checked", "ControlPlanes +not checked")
	if code, _, errOut := s.run(t, "status", "--as", "nobody"); code != codeError || !strings.Contains(errOut, "forbidden") {
		t.Errorf("status without rights: %d\n%s", code, errOut)
	}
	if got := s.unread(t, "--as", "nobody"); len(got) < 15 {
		t.Errorf("without rights, a report lacks only %v", got)
	}
}

// testTimeout: an archive is complete and lists what it lacks when the time is over.
func (s *server) testTimeout(t *testing.T) {
	if got := s.unread(t, "--timeout", "1ns"); len(got) < 15 {
		t.Errorf("without time, a report lacks only %v", got)
	}
	if got := s.unread(t); len(got) > 0 {
		t.Errorf("an administrator's report lacks %v", got)
	}
}

// unread returns the kinds that a report with these arguments lacks.
func (s *server) unread(t *testing.T, arguments ...string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.tar.gz")
	code, _, errOut := s.run(t, append([]string{"report", "--operator-namespaces", "", "--file", name}, arguments...)...)
	if code != 0 {
		t.Fatalf("report %v: %d %s", arguments, code, errOut)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, list, _ := strings.Cut(unpack(t, file), "=== asterism-report/unread.txt\n")
	var kinds []string
	for line := range strings.Lines(list) {
		if kind, _, ok := strings.Cut(line, " objects"); ok {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// awaitRight waits until Kubernetes has added the roles of people to the role view.
func (s *server) awaitRight(t *testing.T, user, verb, group, resource string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: verb, Group: group, Resource: resource},
		}}
		err := s.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("%s may not %s %s: %v", user, verb, resource, err)
	}
}
