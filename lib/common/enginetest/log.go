package enginetest

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// logLines is the number of lines of an operator's log that a failed test shows.
const logLines = 200

// startOrStop matches the log lines of a manager that starts or stops, which would hide the
// relevant lines.
var startOrStop = regexp.MustCompile(`"msg"="(Starting|Stopping and waiting|Shutdown signal|All workers finished|Wait completed)`)

// The loggers of libraries are discarded. They are set before any test starts, because
// goroutines of a test read them.
func init() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// operatorLog returns a logger that shows the end of an operator's log if the test fails.
func operatorLog(t testing.TB) logr.Logger {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if t.Failed() {
			t.Logf("the operator's log:\n%s", strings.Join(lines, "\n"))
		}
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if startOrStop.MatchString(args) {
			return
		}
		lines = append(lines, prefix+" "+args)
		if len(lines) > logLines {
			lines = lines[1:]
		}
	}, funcr.Options{LogTimestamp: true})
}
