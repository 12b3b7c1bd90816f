package command

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// screen is an output that the test reads while the command runs.
type screen struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(text []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.Write(text)
}

func (s *screen) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.String()
}

// await returns the output when it contains the text the given number of times.
func (s *screen) await(t *testing.T, text string, times int) string {
	t.Helper()
	err := await(func() bool { return strings.Count(s.String(), text) >= times })
	if err != nil {
		t.Fatalf("%q is not %d times in the output: %v:\n%s", text, times, err, s.String())
	}
	return s.String()
}

func await(done func() bool) error {
	return wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
}

// counter counts the lists of objects.
type counter struct{ lists atomic.Int64 }

func (c *counter) list(ctx context.Context, objects client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	c.lists.Add(1)
	return objects.List(ctx, list, options...)
}

func (c *counter) await(t *testing.T, lists int64) {
	t.Helper()
	if err := await(func() bool { return c.lists.Load() >= lists }); err != nil {
		t.Fatalf("%d lists, want %d: %v", c.lists.Load(), lists, err)
	}
}

func TestWatchShowsEachChangeOnce(t *testing.T) {
	for name, terminal := range map[string]bool{"a file": false, "a terminal": true} {
		t.Run(name, func(t *testing.T) {
			out := &screen{}
			env := newTestEnvironment(t, "testdata/ready", out, out)
			env.style = func() tree.Style { return tree.Style{Terminal: terminal, Width: 80} }
			access, err := env.connect()
			if err != nil {
				t.Fatal(err)
			}
			lists := &counter{}
			access.WithWatch = interceptor.NewClient(access.WithWatch, interceptor.Funcs{List: lists.list})
			env.connect = func() (*cluster.Cluster, error) { return access, nil }
			ctx, interrupt := context.WithCancel(context.Background())
			code := make(chan int)
			go func() { code <- run(ctx, []string{"status", "--watch"}, env) }()
			first := out.await(t, "NovaCell/demo-cell1", 1)
			lists.await(t, int64(2*len(kinds()))) // the state was read again, and has not changed
			if strings.Contains(first, "\x1b") != terminal {
				t.Errorf("a terminal alone has control characters, got %q", first)
			}
			fail(t, access)
			second := out.await(t, "the cell has lost its bus", 1)
			interrupt()
			if got := <-code; got != codeNotReady {
				t.Errorf("exit code %d, want %d", got, codeNotReady)
			}
			if got := strings.Count(second, "NAME"); got != 2 {
				t.Errorf("%d pictures, want 2:\n%s", got, second)
			}
		})
	}
}

// TestATerminalHasMarksAndWholeTexts: causes and messages are folded below the rows.
func TestATerminalHasMarksAndWholeTexts(t *testing.T) {
	out := &screen{}
	env := newTestEnvironment(t, "testdata/broken", out, out)
	env.style = func() tree.Style { return tree.Style{Terminal: true, Width: 80} }
	if code := run(context.Background(), []string{"status"}, env); code != codeNotReady {
		t.Errorf("exit code %d, want %d", code, codeNotReady)
	}
	const want = `5 of 5 objects are not ready.
NAME                                          READY       AVAILABLE  AGE
ControlPlane/demo                             … False     False      2d
│ cause: Pod/demo-cell1-conductor-0: container nova-conductor: CrashLoopBackOff,
│   restarts: 5, the last run ended with exit code 1: no such host:
│   rabbit://nova:***@rabbitmq.openstack.svc
└─Nova/demo                                   … False                47h
  ├─NovaCell/demo-cell1                       … False                47h
  │ └─NovaConductor/demo-cell1-conductor      … False                47h
  │   │ StatefulSet demo-cell1-conductor has 0 of 1 pods ready
  │   ├─Job/demo-cell1-conductor-db-1a2b3c4d  ✓ Complete             47h
  │   └─StatefulSet/demo-cell1-conductor      ✗ 0/1                  47h
  │       Ready: 0/1
  └─NovaAPI/demo-api                          ✗ False                47h
      Secret demo-identity lacks key authURL
`
	if text := out.String(); text != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", text, want)
	}
}

func fail(t *testing.T, access *cluster.Cluster) {
	t.Helper()
	cell := &novav1.NovaCell{}
	if err := access.Get(context.Background(), types.NamespacedName{Namespace: "openstack", Name: "demo-cell1"}, cell); err != nil {
		t.Fatal(err)
	}
	before := client.MergeFrom(cell.DeepCopy())
	cell.Status.Conditions[0].Status = "False"
	cell.Status.Conditions[0].Reason = "Waiting"
	cell.Status.Conditions[0].Message = "the cell has lost its bus"
	if err := access.Patch(context.Background(), cell, before); err != nil {
		t.Fatal(err)
	}
}
