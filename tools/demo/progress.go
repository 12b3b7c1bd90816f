package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// repeat is the interval in which a running step's line is repeated in a file.
	repeat = 10 * time.Second
	// redraw is the interval in which the lines of a terminal are redrawn.
	redraw = time.Second
)

// progress shows each step in one line. On a terminal the lines of running steps are
// redrawn in place; in a file each change is a new line.
type progress struct {
	mu      sync.Mutex
	out     io.Writer
	width   func() int // of the terminal; nil for a file
	now     func() time.Time
	started time.Time
	total   int // number of steps
	done    int
	running []*line
	drawn   int // lines that the next redraw replaces
}

// line is the line of a running step.
type line struct {
	progress *progress
	number   int
	name     string
	detail   string
	started  time.Time
	said     time.Time
}

func newProgress(out *os.File) *progress {
	p := &progress{out: out, now: time.Now, started: time.Now()}
	if descriptor := int(out.Fd()); term.IsTerminal(descriptor) && os.Getenv("TERM") != "dumb" {
		p.width = func() int {
			width, _, err := term.GetSize(descriptor)
			if err != nil {
				return 80
			}
			return width
		}
	}
	return p
}

func (p *progress) elapsed() time.Duration { return p.now().Sub(p.started) }

// start updates the elapsed times until stop is called.
func (p *progress) start() (stop func()) {
	ticker, ended, stopped := time.NewTicker(redraw), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ticker.C:
				p.tick()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(ended)
		<-stopped
		p.mu.Lock()
		defer p.mu.Unlock()
		p.erase()
	}
}

// tick redraws a terminal, or repeats the lines of steps that printed nothing for long.
func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width != nil {
		p.erase()
		p.draw()
		return
	}
	for _, l := range p.running {
		if p.now().Sub(l.said) >= repeat {
			p.say(l)
		}
	}
}

func (p *progress) begin(number int, name string) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &line{progress: p, number: number, name: name, started: p.now(), said: p.now()}
	p.running = append(p.running, l)
	slices.SortFunc(p.running, func(a, b *line) int { return cmp.Compare(a.number, b.number) })
	if p.width == nil {
		_, _ = fmt.Fprintf(p.out, "%s …\n", p.title(l))
		return l
	}
	p.erase()
	p.draw()
	return l
}

// end prints the final line of a step that is done or has failed, and none for a step
// that was stopped because another failed.
func (p *progress) end(l *line, err error, stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.running = slices.DeleteFunc(p.running, func(other *line) bool { return other == l })
	switch {
	case err == nil:
		p.done++
		p.print(fmt.Sprintf("%s: done in %s%s", p.title(l), since(p.now(), l.started), p.left()))
	case !stopped:
		p.print(fmt.Sprintf("%s: FAILED after %s", p.title(l), since(p.now(), l.started)))
	}
	p.draw()
}

// note sets the step's detail, which is shown with the next repetition.
func (l *line) note(detail string) {
	l.progress.mu.Lock()
	defer l.progress.mu.Unlock()
	l.detail = detail
}

// say sets the step's detail and shows it at once.
func (l *line) say(detail string) {
	p := l.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.detail == detail {
		return
	}
	l.detail = detail
	if p.width == nil {
		p.say(l)
		return
	}
	p.erase()
	p.draw()
}

func (p *progress) say(l *line) {
	l.said = p.now()
	p.print(p.text(l))
}

func (p *progress) print(text string) { _, _ = fmt.Fprintln(p.out, text) }

func (p *progress) title(l *line) string {
	return fmt.Sprintf("[%*d/%d] %s", len(fmt.Sprint(p.total)), l.number, p.total, l.name)
}

func (p *progress) text(l *line) string {
	text := fmt.Sprintf("%s … %s", p.title(l), since(p.now(), l.started))
	if l.detail != "" {
		text += "  " + l.detail
	}
	return text
}

func (p *progress) left() string {
	switch left := p.total - p.done; left {
	case 0:
		return ""
	case 1:
		return ", 1 step left"
	default:
		return fmt.Sprintf(", %d steps left", left)
	}
}

// draw shows the running steps below the printed lines.
func (p *progress) draw() {
	if p.width == nil {
		return
	}
	var text strings.Builder
	for _, l := range p.running {
		text.WriteString(cut(p.text(l), p.width()-1) + "\n")
	}
	p.drawn = len(p.running)
	_, _ = io.WriteString(p.out, text.String())
}

// erase removes the lines of draw.
func (p *progress) erase() {
	if p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// cut shortens a text to one line of a terminal.
func cut(text string, width int) string {
	letters := []rune(text)
	if len(letters) <= width || width < 1 {
		return text
	}
	return string(letters[:width-1]) + "…"
}

func since(now, then time.Time) time.Duration { return now.Sub(then).Truncate(time.Second) }
