//go:build bench

package trees

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"asterism.dev/lib/common/enginetest"
)

const operatorNamespace = "asterism-system"

// files has the operators, which another run does not link again, and their logs.
var files = filepath.Join(os.TempDir(), "trees")

// operator is a process like the container of the operator's Deployment. Its names of hosts are
// in a file, in a mount namespace of its own.
type operator struct {
	t       *testing.T
	name    string
	command []string
	env     []string
	process *exec.Cmd
}

func (o *operator) build(hosts string) {
	o.t.Helper()
	binary := filepath.Join(files, o.name+"-operator")
	build := exec.CommandContext(o.t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./cmd")
	build.Dir = root + "operators/" + o.name
	if out, err := build.CombinedOutput(); err != nil {
		o.t.Fatalf("building the operator: %v: %s", err, out)
	}
	o.command = []string{"unshare", "--map-root-user", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, binary}
	if o.name == "nova" {
		o.command = append(o.command, "--allow-any-server") // on the loopback interface
	}
	deployment := &appsv1.Deployment{}
	enginetest.DecodeSample(o.t, root+"config/operator/deployment.yaml", "Deployment", deployment)
	o.env = append(os.Environ(), "POD_NAMESPACE="+operatorNamespace, "POD_NAME="+o.name+"-0", "POD_SERVICE_ACCOUNT=asterism-"+o.name+"-operator")
	for _, env := range deployment.Spec.Template.Spec.Containers[0].Env {
		if env.ValueFrom == nil {
			o.env = append(o.env, env.Name+"="+env.Value) // GOGC and GOMEMLIMIT
		}
	}
	o.t.Cleanup(o.stop)
}

// start starts the operator, and waits until it is ready.
func (o *operator) start() {
	o.t.Helper()
	listener, err := new(net.ListenConfig).Listen(o.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		o.t.Fatal(err)
	}
	probes := listener.Addr().String()
	_ = listener.Close()
	log, err := os.Create(filepath.Join(files, o.name+".log"))
	if err != nil {
		o.t.Fatal(err)
	}
	defer log.Close()
	arguments := append(o.command[1:len(o.command):len(o.command)], "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address="+probes)
	o.process = exec.Command(o.command[0], arguments...)
	o.process.Env, o.process.Stdout, o.process.Stderr = o.env, log, log
	if err := o.process.Start(); err != nil {
		o.t.Fatal(err)
	}
	enginetest.Eventually(o.t, "operator "+o.name+" is ready, see "+log.Name(), func() error {
		response, err := http.Get("http://" + probes + "/readyz")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
}

func (o *operator) stop() {
	if o.process != nil && o.process.ProcessState == nil {
		_ = o.process.Process.Signal(syscall.SIGTERM)
		_ = o.process.Wait()
	}
}

func (o *operator) proc(file string) string {
	o.t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", o.process.Process.Pid, file))
	if err != nil {
		o.t.Fatalf("operator %s has ended: %v", o.name, err)
	}
	return string(content)
}

// memory returns VmRSS or VmHWM in KiB.
func (o *operator) memory(field string) int {
	o.t.Helper()
	_, after, _ := strings.Cut(o.proc("status"), field)
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		o.t.Fatal(err)
	}
	return kib
}

// cpu returns the seconds since the start of the process.
func (o *operator) cpu() float64 {
	o.t.Helper()
	stat := o.proc("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // from the third field on, see proc(5)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// tally counts the requests of an operator. Reads are of single objects and of lists; discoveries
// are of the kinds of an API group.
type tally struct {
	created, changed, status, events, reads, discoveries, watches, leases int

	last time.Time // of a read or write
}

func (a tally) plus(b tally) tally {
	return tally{
		a.created + b.created, a.changed + b.changed, a.status + b.status, a.events + b.events,
		a.reads + b.reads, a.discoveries + b.discoveries, a.watches + b.watches, a.leases + b.leases, latest(a.last, b.last),
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (a tally) writes() int { return a.created + a.changed + a.status }

func (a tally) per(n float64) string {
	return fmt.Sprintf("writes %.2f (%.2f create, %.2f change or delete, %.2f of the status), events %.2f, reads %.2f, discoveries %.2f, watches %.2f, requests for the Lease %.2f",
		float64(a.writes())/n, float64(a.created)/n, float64(a.changed)/n, float64(a.status)/n, float64(a.events)/n, float64(a.reads)/n, float64(a.discoveries)/n, float64(a.watches)/n, float64(a.leases)/n)
}

// entry is a line of the audit log.
type entry struct {
	Stage, Verb, UserAgent string
	ObjectRef              struct{ Resource, Subresource string }
	ResponseStatus         struct{ Code int }
	StageTimestamp         time.Time
}

// count adds a request. Server-side apply answers 201 for a created object. A watch is counted when
// it begins.
func (a *tally) count(e entry) {
	if watch := e.Verb == "watch"; watch || e.Stage != "ResponseComplete" {
		if watch && e.Stage == "ResponseStarted" {
			a.watches++
		}
		return
	}
	read := e.Verb == "get" || e.Verb == "list"
	switch {
	case e.ObjectRef.Resource == "leases":
		a.leases++
		return
	case e.ObjectRef.Resource == "":
		a.discoveries++
		return
	case read:
		a.reads++
	case e.ObjectRef.Resource == "events":
		a.events++
	case e.ObjectRef.Subresource == "status":
		a.status++
	case e.ResponseStatus.Code == http.StatusCreated:
		a.created++
	default:
		a.changed++
	}
	a.last = latest(a.last, e.StageTimestamp)
}

// audit reads the audit log of the API server.
type audit struct {
	t    *testing.T
	file *os.File
}

func openAudit(t *testing.T) *audit {
	t.Helper()
	file, err := os.Open(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "audit.log"))
	if err != nil {
		t.Fatalf("reading the audit log of the API server, which tools/cluster writes beside the KUBECONFIG: %v", err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &audit{t: t, file: file}
}

// take counts the requests since the last call, by the operator.
func (a *audit) take() map[string]tally {
	a.t.Helper()
	counted := map[string]tally{}
	lines := bufio.NewReaderSize(a.file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the last line may be incomplete
			if _, err = a.file.Seek(-int64(len(line)), io.SeekCurrent); err != nil {
				a.t.Fatalf("reading the audit log: %v", err)
			}
			return counted
		}
		if err == nil && !bytes.Contains(line, []byte(`"userAgent":"nova`)) {
			continue
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			a.t.Fatalf("reading the audit log: %v", err)
		}
		name, _, _ := strings.Cut(e.UserAgent, "-operator/")
		of := counted[name]
		of.count(e)
		counted[name] = of
	}
}

// inParallel calls do for every number from from to to-1, and returns the errors.
func inParallel(from, to int, do func(int) error) error {
	var next atomic.Int64
	next.Store(int64(from))
	var working sync.WaitGroup
	failed := make([]error, workers)
	for worker := range workers {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < to && failed[worker] == nil; i = int(next.Add(1)) - 1 {
				failed[worker] = do(i)
			}
		})
	}
	working.Wait()
	return errors.Join(failed...)
}
