package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func recorded(width int) (*progress, *clock, *strings.Builder) {
	out, time := &strings.Builder{}, &clock{now: time.Unix(0, 0)}
	p := &progress{out: out, now: time.time, started: time.time(), total: 12}
	if width > 0 {
		p.width = func() int { return width }
	}
	return p, time, out
}

func TestFileGetsALineForEachChange(t *testing.T) {
	p, clock, out := recorded(0)
	line := p.begin(3, "Loading images")
	clock.pass(4 * time.Second)
	line.note("openstack.tar")
	p.tick() // too early to repeat
	clock.pass(6 * time.Second)
	p.tick()
	line.say("nova.tar")
	line.say("nova.tar") // nothing new
	clock.pass(2 * time.Second)
	p.end(line, nil, false)
	want := `[ 3/12] Loading images …
[ 3/12] Loading images … 10s  openstack.tar
[ 3/12] Loading images … 10s  nova.tar
[ 3/12] Loading images: done in 12s, 11 steps left
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestTerminalIsRedrawnInPlace(t *testing.T) {
	p, clock, out := recorded(40)
	second := p.begin(2, "Second")
	first := p.begin(1, "First")
	clock.pass(3 * time.Second)
	out.Reset()
	second.say("a detail that is far too long for this terminal")
	want := "\x1b[2A\x1b[J[ 1/12] First … 3s\n[ 2/12] Second … 3s  a detail that is …\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	out.Reset()
	p.end(first, nil, false)
	want = "\x1b[2A\x1b[J[ 1/12] First: done in 3s, 11 steps left\n[ 2/12] Second … 3s  a detail that is …\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestStepsStartWhenTheirNeedsAreDone(t *testing.T) {
	p, _, _ := recorded(0)
	var mu sync.Mutex
	var order []string
	parallel := make(chan struct{})
	record := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
	}
	err := p.run(t.Context(), []step{
		{"a", nil, func(context.Context, *line) error { <-parallel; record("a"); return nil }},
		{"b", nil, func(context.Context, *line) error { record("b"); close(parallel); return nil }},
		{"c", []string{"a", "b"}, func(context.Context, *line) error { record("c"); return nil }},
	})
	if got := strings.Join(order, " "); err != nil || got != "b a c" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFailureEndsTheOtherStepsAndIsReportedOnce(t *testing.T) {
	p, _, out := recorded(0)
	broken := errors.New("no such image")
	err := p.run(t.Context(), []step{
		{"endless", nil, func(ctx context.Context, _ *line) error { <-ctx.Done(); return ctx.Err() }},
		{"broken", nil, func(context.Context, *line) error { return broken }},
		{"never", []string{"broken"}, func(context.Context, *line) error {
			t.Error("a step ran although the step that it needs failed")
			return nil
		}},
	})
	failed := &stepError{}
	if !errors.As(err, &failed) || failed.step != "broken" || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if count := strings.Count(out.String(), "FAILED"); count != 1 || !strings.Contains(out.String(), "[2/3] broken: FAILED") {
		t.Errorf("got\n%s", out)
	}
}
