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

// logLines is how much of an operator's log a failed test shows.
const logLines = 200

// comesOrGoes matches what a manager says when it starts and stops, which would
// hide why a test failed.
var comesOrGoes = regexp.MustCompile(`"msg"="(Starting|Stopping and waiting|Shutdown signal|All workers finished|Wait completed)`)

// The loggers of libraries write nothing between the lines of the tests. They are set
// before any test starts, because goroutines of a test read them.
func init() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// operatorLog shows the end of an operator's log when the test has failed, and
// only then.
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
		if comesOrGoes.MatchString(args) {
			return
		}
		lines = append(lines, prefix+" "+args)
		if len(lines) > logLines {
			lines = lines[1:]
		}
	}, funcr.Options{LogTimestamp: true})
}
