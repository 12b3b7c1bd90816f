package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const counting = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"

func TestRecordHasTheTimeOfAllPrograms(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	args := []string{"--record", record, "--name", "make lint, make test", "--", "sh", "-c", `sh -c "$0" & wait; exit 3`, counting}
	failed, before := &exec.ExitError{}, ofChildren(t)
	if err := run(t.Context(), args, nil); !errors.As(err, &failed) || failed.ExitCode() != 3 {
		t.Errorf("the exit status of the command: %v", err)
	}
	used := ofChildren(t) - before - 100*time.Millisecond // the record is rounded
	if err := run(t.Context(), []string{"--record", record, "--name", "nothing", "--", "true"}, nil); err != nil {
		t.Fatal(err)
	}
	rows, err := readRecord(record)
	if err != nil || len(rows) != 2 || rows[0].Name != "make lint, make test" || rows[1].Name != "nothing" {
		t.Fatalf("got %+v, %v", rows, err)
	}
	if rows[0].CPU == 0 || rows[0].CPU < used || rows[0].Wall == 0 {
		t.Errorf("recorded %+v, and the programs used %s", rows[0], used)
	}
}

// ofChildren is the CPU time of the programs that have ended.
func ofChildren(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestIncompleteCommandLinesAreRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"table"}, {"--record", "x"}, {"--record", "x", "--name", "y"}, {"--other"}} {
		if err := run(t.Context(), args, nil); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTableSumsTheStepsAndShowsTheSlowestSpecs(t *testing.T) {
	folder := t.TempDir()
	record, report := filepath.Join(folder, "record"), filepath.Join(folder, "report.json")
	if err := os.WriteFile(record, []byte("make lint, make test 100.5 150.2\nmake e2e 60 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var specs []string
	for i := range 25 {
		specs = append(specs, fmt.Sprintf(`{"ContainerHierarchyTexts": ["A cell", "that fails"], "LeafNodeType": "It", "LeafNodeText": "is spec %d", "RunTime": %d000000000, "State": "passed"}`, i, i+1))
	}
	specs = append(specs, `{"ContainerHierarchyTexts": null, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "RunTime": 90500000000}`)
	content := `[{"SuitePath": "/x", "SuiteSucceeded": true, "SpecReports": [` + strings.Join(specs, ",") + `]}]`
	if err := os.WriteFile(report, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"table", "--record", record, report}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var squeezed []string
	for _, line := range lines {
		squeezed = append(squeezed, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"STEP WALL s CPU s", "make lint, make test 100 150", "make e2e 60 30", "total 160 180", "", "The slowest specs:", "90.5 s BeforeSuite", "25.0 s A cell: that fails: is spec 24"}
	if len(lines) != len(want)-2+slowest || strings.Join(squeezed[:len(want)], "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestReportThatIsNoReportIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, []byte(strconv.Quote("text")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSpecs(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptionEndsTheProcessesOfTheCommand(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	ctx, cancel := context.WithCancel(t.Context())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write // which the sleeping process inherits, and holds open until it ends
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--record", record, "--name", "sleep", "--", "sh", "-c", "sleep 300 & echo started; wait"}, write)
	}()
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("got %q: %v", line, err)
	}
	os.Stdout = stdout
	cancel()
	if err := <-ended; err == nil {
		t.Error("an interrupted command succeeded")
	}
	if err := errors.Join(write.Close(), read.SetReadDeadline(time.Now().Add(2*time.Minute))); err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a process of the command runs on: %v", err)
	}
	if content, err := os.ReadFile(record); err != nil || !strings.HasPrefix(string(content), "sleep ") {
		t.Errorf("got %q: %v", content, err)
	}
}
