package progress

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Follow returns a writer to log that notes the last complete line of each write, after the
// name of a part of the step, if the part has one. Outside of a step, it returns log.
func (l *Line) Follow(part string, log io.Writer) io.Writer {
	if l == nil {
		return log
	}
	if part != "" {
		l.Note(part)
		part += ": "
	}
	return &output{log: log, note: func(text string) { l.Note(part + text) }}
}

// output is the output of a program.
type output struct {
	mu   sync.Mutex
	log  io.Writer
	note func(string)
	rest string
}

func (o *output) Write(content []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.FieldsFunc(o.rest+string(content)+"\x00", func(r rune) bool { return r == '\n' || r == '\r' })
	o.rest = strings.TrimSuffix(lines[len(lines)-1], "\x00")
	for _, text := range slices.Backward(lines[:len(lines)-1]) {
		if text = strings.TrimSpace(text); text != "" {
			o.note(text)
			break
		}
	}
	return o.log.Write(content)
}

type lineKey struct{}

// Context returns a context in which Spent counts for the step.
func (l *Line) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, lineKey{}, l)
}

// Spent adds CPU time to the step of the context, if it has one.
func Spent(ctx context.Context, spent time.Duration) {
	if l, found := ctx.Value(lineKey{}).(*Line); found {
		l.progress.mu.Lock()
		defer l.progress.mu.Unlock()
		l.cpu += spent
	}
}
