package progress

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
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

// second lets a second pass.
func (c *clock) second() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
}

// screen is what a terminal shows: it knows the two escape sequences up and clear.
type screen struct{ lines []string }

var escape = regexp.MustCompile("^\x1b\\[([0-9]+)A\x1b\\[J")

func (s *screen) Write(content []byte) (int, error) {
	text := string(content)
	if found := escape.FindStringSubmatch(text); found != nil {
		up, err := strconv.Atoi(found[1])
		if err != nil || up > len(s.lines) {
			return 0, errors.New("the cursor leaves the screen")
		}
		s.lines, text = s.lines[:len(s.lines)-up], strings.TrimPrefix(text, found[0])
	}
	for line := range strings.Lines(text) {
		s.lines = append(s.lines, strings.TrimSuffix(line, "\n"))
	}
	return len(content), nil
}

// recorded returns a progress in a file.
func recorded(total int) (*Progress, *clock, *strings.Builder) {
	out, time := &strings.Builder{}, &clock{now: time.Unix(0, 0)}
	p := New(out, total)
	p.now, p.started = time.time, time.time()
	return p, time, out
}

func count(text *strings.Builder, part string) int { return strings.Count(text.String(), part) }

func TestFileRepeatsARunningStepOnceAMinute(t *testing.T) {
	p, clock, out := recorded(12)
	line := p.Begin(3, "Building")
	for i := range 10 * 60 {
		clock.second()
		line.Note("package " + strconv.Itoa(i))
		p.tick()
	}
	if lines := count(out, "\n"); lines < 9 || lines > 11 || count(out, "package 5") == 0 {
		t.Errorf("10 minutes give %d lines:\n%s", lines, out)
	}
}

func TestFileShowsEachMessageOnce(t *testing.T) {
	p, clock, out := recorded(12)
	line := p.Begin(3, "Deploying")
	for range 3 {
		clock.second()
		line.Say("waiting for the database")
	}
	line.Say("waiting for the API")
	line.End(nil, false)
	if count(out, "the database") != 1 || count(out, "the API") != 1 || count(out, "Deploying: done in 3s, 11 steps left") != 1 {
		t.Errorf("got\n%s", out)
	}
}

func TestTerminalShowsOneLineForEachRunningStep(t *testing.T) {
	shown, clock := &screen{}, &clock{now: time.Unix(0, 0)}
	p := New(shown, 2)
	p.now, p.started, p.width = clock.time, clock.time(), func() int { return 40 }
	second, first := p.Begin(2, "Second"), p.Begin(1, "First")
	for range 100 {
		clock.second()
		p.tick()
	}
	second.Say("a detail that is far too long for this terminal")
	p.mu.Lock() // a tick may come at any time
	lines := strings.Join(shown.lines, "\n")
	p.mu.Unlock()
	if !regexp.MustCompile(`^\S+ First … 1m40s\n\S+ Second … 1m40s  a detail.*…$`).MatchString(lines) {
		t.Errorf("the screen shows\n%s", lines)
	}
	first.End(nil, false)
	second.End(errors.New("no"), false)
	if lines := strings.Join(shown.lines, "\n"); !regexp.MustCompile(`^\S+ First: done in 1m40s.*\n\S+ Second: FAILED after 1m40s$`).MatchString(lines) {
		t.Errorf("the screen shows at the end\n%s", lines)
	}
	for _, line := range shown.lines {
		if len([]rune(line)) > 40 {
			t.Errorf("wider than the terminal: %s", line)
		}
	}
}

func TestDetailIsTheLastCompleteLineOfAProgram(t *testing.T) {
	p, _, out := recorded(1)
	line := p.Begin(1, "Building")
	var log bytes.Buffer
	program := line.Follow("nova-api", &log)
	for _, text := range []string{"net/http\nk8s.io/api/co", "re/v1\r\n", "\n", "k8s.io/cl"} {
		if _, err := program.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	line.Say("asked")
	if line.detail != "asked" || log.String() != "net/http\nk8s.io/api/core/v1\r\n\nk8s.io/cl" {
		t.Errorf("detail %q, log %q", line.detail, log.String())
	}
	if _, err := program.Write([]byte("ient-go\n")); err != nil || line.detail != "nova-api: k8s.io/client-go" {
		t.Errorf("detail %q, %v", line.detail, err)
	}
	if count(out, "net/http") != 0 {
		t.Errorf("each package has a line in the file:\n%s", out)
	}
}

func TestAnotherCommandGetsEveryDetail(t *testing.T) {
	t.Setenv(variable, "details")
	p, _, out := recorded(0)
	if err := p.During("building", func(line *Line) error {
		line.Note("net/http")
		line.Note("net/http")
		line.Note("k8s.io/api")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "building …\nnet/http\nk8s.io/api\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestSpentTimeBelongsToTheStepOfTheContext(t *testing.T) {
	p, clock, _ := recorded(2)
	first, second := p.Begin(1, "First"), p.Begin(2, "Second")
	Spent(second.Context(t.Context()), time.Minute)
	Spent(t.Context(), time.Hour)
	clock.second()
	first.End(nil, false)
	second.End(nil, false)
	for i, want := range []time.Duration{0, time.Minute} {
		if row := p.Ended()[i]; row.CPU != want || row.Wall != time.Second {
			t.Errorf("got %+v, want %s", row, want)
		}
	}
}
