// Package progress shows what a command does: on a terminal in lines that are redrawn in
// place, and in a file in a line for each event and for each minute of a long step.
package progress

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

	"asterism.dev/tools/internal/cpu"
)

const (
	// repeat is the interval in which a running step's line is repeated in a file.
	repeat = time.Minute
	// redraw is the interval in which the lines of a terminal are redrawn.
	redraw = time.Second
)

// Details is the environment of a command whose last line of output another command shows as
// a detail: it prints every detail of its own at once.
const Details = variable + "=details"

const variable = "ASTERISM_PROGRESS"

// Progress shows each running step in one line.
type Progress struct {
	mu      sync.Mutex
	out     io.Writer
	width   func() int // of the terminal; nil for a file
	details bool
	now     func() time.Time
	started time.Time
	total   int // number of steps, 0 if it is not known
	begun   int
	running []*Line
	ended   []cpu.Row
	drawn   int           // lines that the next redraw replaces
	idle    chan struct{} // closed when no step runs
}

// Line is the line of a running step.
type Line struct {
	progress *Progress
	number   int
	name     string
	detail   string
	started  time.Time
	said     time.Time
	cpu      time.Duration
}

// New returns the progress of that many steps. If the number is 0, lines begin with the time
// instead of the step's number.
func New(out io.Writer, total int) *Progress {
	p := &Progress{out: out, total: total, now: time.Now, started: time.Now(), details: os.Getenv(variable) == "details"}
	file, isFile := out.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		p.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return p
}

// Elapsed is the time since New.
func (p *Progress) Elapsed() time.Duration { return p.now().Sub(p.started) }

// Ended returns the steps that are done.
func (p *Progress) Ended() []cpu.Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ended)
}

// Say prints an event.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(p.since() + " " + fmt.Sprintf(format, args...))
}

// During runs the next step.
func (p *Progress) During(name string, run func(*Line) error) error {
	l := p.Begin(0, name)
	err := run(l)
	l.End(err, false)
	return err
}

// Begin shows a step with its number, or with the next number if it is 0.
func (p *Progress) Begin(number int, name string) *Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	l := &Line{progress: p, number: cmp.Or(number, p.begun), name: name, started: p.now(), said: p.now()}
	p.running = append(p.running, l)
	slices.SortFunc(p.running, func(a, b *Line) int { return cmp.Compare(a.number, b.number) })
	if len(p.running) == 1 {
		p.idle = make(chan struct{})
		go p.follow(p.idle)
	}
	if p.width == nil {
		p.print(p.title(l) + " …")
	} else {
		p.redraw()
	}
	return l
}

// End prints the final line of a step that is done or has failed, and none for a step that
// was stopped because another failed.
func (l *Line) End(err error, stopped bool) {
	p := l.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(other *Line) bool { return other == l })
	if len(p.running) == 0 {
		close(p.idle)
	}
	spent := p.now().Sub(l.started)
	switch {
	case err == nil:
		p.ended = append(p.ended, cpu.Row{Name: l.name, Wall: spent, CPU: l.cpu})
		p.print(fmt.Sprintf("%s: done in %s%s", p.title(l), spent.Truncate(time.Second), p.left()))
	case !stopped:
		p.print(fmt.Sprintf("%s: FAILED after %s", p.title(l), spent.Truncate(time.Second)))
	default:
		p.redraw()
	}
}

// Note sets the step's detail: a terminal shows it with the next redraw, a file with the next
// repetition.
func (l *Line) Note(detail string) {
	p := l.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.details && detail != l.detail {
		p.print(detail)
	}
	l.detail = detail
}

// Say sets the step's detail and shows it at once.
func (l *Line) Say(detail string) {
	p := l.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.detail == detail {
		return
	}
	l.detail = detail
	if p.width == nil {
		p.repeat(l)
	} else {
		p.redraw()
	}
}

// follow updates the running steps until none runs.
func (p *Progress) follow(idle <-chan struct{}) {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.tick()
		case <-idle:
			return
		}
	}
}

// tick redraws a terminal, or repeats the lines of steps that printed nothing for long.
func (p *Progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redraw()
	for _, l := range p.running {
		if p.width == nil && p.now().Sub(l.said) >= repeat {
			p.repeat(l)
		}
	}
}

func (p *Progress) repeat(l *Line) {
	l.said = p.now()
	p.print(p.text(l))
}

// since is the beginning of a line without a number.
func (p *Progress) since() string { return fmt.Sprintf("[%6s]", p.Elapsed().Truncate(time.Second)) }

func (p *Progress) title(l *Line) string {
	if p.total == 0 {
		return p.since() + " " + l.name
	}
	return fmt.Sprintf("[%*d/%d] %s", len(fmt.Sprint(p.total)), l.number, p.total, l.name)
}

func (p *Progress) text(l *Line) string {
	text := fmt.Sprintf("%s … %s", p.title(l), p.now().Sub(l.started).Truncate(time.Second))
	if l.detail != "" {
		text += "  " + l.detail
	}
	return text
}

func (p *Progress) left() string {
	switch left := p.total - len(p.ended); {
	case left <= 0:
		return ""
	case left == 1:
		return ", 1 step left"
	default:
		return fmt.Sprintf(", %d steps left", left)
	}
}

// print prints a line above the lines of the running steps.
func (p *Progress) print(text string) {
	p.erase()
	_, _ = fmt.Fprintln(p.out, text)
	p.redraw()
}

// redraw shows the running steps below the printed lines.
func (p *Progress) redraw() {
	if p.width == nil {
		return
	}
	p.erase()
	var text strings.Builder
	for _, l := range p.running {
		text.WriteString(cut(p.text(l), p.width()-1) + "\n")
	}
	p.drawn = len(p.running)
	_, _ = io.WriteString(p.out, text.String())
}

// erase removes the lines of redraw.
func (p *Progress) erase() {
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
