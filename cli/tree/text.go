package tree

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// maxMessage bounds a message of a table, in characters. -o yaml has the whole message.
const maxMessage = 100

// line is a line of the table: a row, or else a text below a row.
type line struct {
	cells []string
	text  string
}

// Write writes the nodes as a table, with the children of a node below it, and below a node
// that is not ready the cause. A cause that stands above is not repeated.
func Write(out io.Writer, nodes []Node, namespaces bool, now time.Time) error {
	t := &table{now: now, told: map[Cause]bool{}, namespaces: namespaces}
	t.add("NAME", "READY", "AVAILABLE", "AGE", "MESSAGE")
	for _, n := range nodes {
		t.branch(n, "", "")
	}
	_, err := io.WriteString(out, t.String())
	return err
}

type table struct {
	lines      []line
	now        time.Time
	told       map[Cause]bool
	namespaces bool // the roots are shown with their namespaces
}

func (t *table) add(cells ...string) { t.lines = append(t.lines, line{cells: cells}) }

func (t *table) branch(n Node, stem, below string) {
	name := n.Kind + "/" + n.Name
	if t.namespaces && stem == "" {
		name = n.Namespace + " " + name
	}
	t.add(stem+name, n.Short, string(n.Available), duration.HumanDuration(t.now.Sub(n.Created.Time)), cut(oneLine(n.Rest)))
	if n.Cause != nil && !t.told[*n.Cause] {
		t.told[*n.Cause] = true
		bar := "  "
		if len(n.Children) > 0 {
			bar = "│ "
		}
		t.lines = append(t.lines, line{text: below + bar + "cause: " + n.Cause.String()})
	}
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			t.branch(child, below+"└─", below+"  ")
		} else {
			t.branch(child, below+"├─", below+"│ ")
		}
	}
}

// String aligns the columns. A text below a row has no columns.
func (t *table) String() string {
	var widths []int
	for _, l := range t.lines {
		for i, cell := range l.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, l := range t.lines {
		text := l.text
		for i, cell := range l.cells {
			text += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return out.String()
}

func cut(text string) string {
	if characters := []rune(text); len(characters) > maxMessage {
		return string(characters[:maxMessage-1]) + "…"
	}
	return text
}
