// Package processor measures tests on a machine that may be busy with others.
package processor

import (
	"syscall"
	"testing"
	"time"
)

// Time is the time for which this program has used processors.
func Time(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
