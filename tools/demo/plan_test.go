package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"asterism.dev/tools/internal/progress"
)

func TestStepsStartWhenTheirNeedsAreDone(t *testing.T) {
	var mu sync.Mutex
	var order []string
	parallel := make(chan struct{})
	record := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
	}
	err := runSteps(t.Context(), progress.New(io.Discard, 3), []step{
		{"a", nil, func(context.Context, *progress.Line) error { <-parallel; record("a"); return nil }},
		{"b", nil, func(context.Context, *progress.Line) error { record("b"); close(parallel); return nil }},
		{"c", []string{"a", "b"}, func(context.Context, *progress.Line) error { record("c"); return nil }},
	})
	if got := strings.Join(order, " "); err != nil || got != "b a c" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFailureEndsTheOtherStepsAndIsReportedOnce(t *testing.T) {
	var out strings.Builder
	broken := errors.New("no such image")
	err := runSteps(t.Context(), progress.New(&out, 3), []step{
		{"endless", nil, func(ctx context.Context, _ *progress.Line) error { <-ctx.Done(); return ctx.Err() }},
		{"broken", nil, func(context.Context, *progress.Line) error { return broken }},
		{"never", []string{"broken"}, func(context.Context, *progress.Line) error {
			t.Error("a step ran although the step that it needs failed")
			return nil
		}},
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "broken: ") {
		t.Errorf("got %v", err)
	}
	if count := strings.Count(out.String(), "FAILED"); count != 1 || !strings.Contains(out.String(), "[2/3] broken: FAILED") {
		t.Errorf("got\n%s", out.String())
	}
}
