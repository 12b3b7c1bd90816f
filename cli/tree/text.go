package tree

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// maxMessage bounds a message of a table, in characters. -o yaml has the whole message.
const maxMessage = 100

// line is a line of the table: a row, or else a text below a row, whose first line begins with
// the stem.
type line struct {
	cells []string
	stem  string
	text  string
}

// Style is the form of a table.
type Style struct {
	// Namespaces shows the roots with their namespaces.
	Namespaces bool
	// Terminal has the marks ✓, … and ✗, and whole messages below the rows, in lines of Width
	// characters: a person reads it.
	Terminal bool
	Width    int
}

// StyleOf returns the style for an output.
func StyleOf(out io.Writer) Style {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return Style{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 40 {
		width = 80
	}
	return Style{Terminal: true, Width: width}
}

// Write writes a summary, and the nodes as a table, with the children of a node below it, and
// below a node that is not ready the cause. A cause that stands above is not repeated, and a
// message stands at the lowest object that has it.
func Write(out io.Writer, nodes []Node, style Style, now time.Time) error {
	t := &table{Style: style, now: now, told: map[Cause]bool{}}
	t.row("NAME", "READY", "AVAILABLE", "AGE", "MESSAGE")
	for _, n := range nodes {
		t.branch(n, "", "")
	}
	_, err := io.WriteString(out, summary(nodes)+"\n"+t.String())
	return err
}

// summary tells how many objects of Asterism's kinds are ready. The operators judge the others.
func summary(nodes []Node) string {
	all, ready, unavailable := count(nodes)
	switch {
	case all == 1 && unavailable == 1:
		return "The object is ready, but not available."
	case all == 1 && ready == 1:
		return "The object is ready."
	case all == ready && unavailable > 0:
		return fmt.Sprintf("All %d objects are ready, but %d of them are not available.", all, unavailable)
	case all == ready:
		return fmt.Sprintf("All %d objects are ready.", all)
	}
	return fmt.Sprintf("%d of %d objects are not ready.", all-ready, all)
}

func count(nodes []Node) (all, ready, unavailable int) {
	for _, n := range nodes {
		if n.Counted {
			all++
			if n.Ready == metav1.ConditionTrue {
				ready++
			}
			if n.Unavailable() {
				unavailable++
			}
		}
		below, readyBelow, unavailableBelow := count(n.Children)
		all, ready, unavailable = all+below, ready+readyBelow, unavailable+unavailableBelow
	}
	return all, ready, unavailable
}

type table struct {
	Style

	lines []line
	now   time.Time
	told  map[Cause]bool
}

// row adds a row, on a terminal without the message.
func (t *table) row(cells ...string) {
	if t.Terminal {
		cells = cells[:len(cells)-1]
	}
	t.lines = append(t.lines, line{cells: cells})
}

func (t *table) branch(n Node, stem, below string) {
	name := n.Kind + "/" + n.Name
	if t.Namespaces && stem == "" {
		name = strings.TrimSpace(n.Namespace + " " + name)
	}
	note := oneLine(message(n))
	t.row(stem+name, t.mark(n)+n.Short, string(n.Available), duration.HumanDuration(t.now.Sub(n.Created.Time)), cut(note))
	bar := "  "
	if len(n.Children) > 0 {
		bar = "│ "
	}
	if t.Terminal && note != "" {
		t.lines = append(t.lines, line{stem: below + bar, text: note})
	}
	if n.Cause != nil && !t.told[*n.Cause] {
		t.told[*n.Cause] = true
		t.lines = append(t.lines, line{stem: below + bar, text: "cause: " + n.Cause.String()})
	}
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			t.branch(child, below+"└─", below+"  ")
		} else {
			t.branch(child, below+"├─", below+"│ ")
		}
	}
}

// message returns the message of a node, or "" if an object below has the same.
func message(n Node) string {
	for _, child := range n.Children {
		if child.Rest == n.Rest {
			return ""
		}
	}
	return n.Rest
}

// mark is what a person sees first.
func (t *table) mark(n Node) string {
	switch {
	case !t.Terminal:
		return ""
	case n.Ready == metav1.ConditionTrue:
		return "✓ "
	case n.Ready == metav1.ConditionFalse && n.Reason != reasonProgressing:
		return "✗ "
	}
	return "… "
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
		row := l.stem + l.text
		for i, cell := range l.cells {
			row += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		if t.Terminal && l.cells == nil {
			row = fold(l.stem, l.text, t.Width)
		}
		out.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return out.String()
}

// fold breaks a text between words into lines that begin with the stem.
func fold(stem, text string, width int) string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		switch longer := current + " " + word; {
		case current == "":
			current = word
		case utf8.RuneCountInString(stem+longer) > width:
			lines, current = append(lines, stem+current), "  "+word
		default:
			current = longer
		}
	}
	return strings.Join(append(lines, stem+current), "\n")
}

func cut(text string) string {
	if characters := []rune(text); len(characters) > maxMessage {
		return string(characters[:maxMessage-1]) + "…"
	}
	return text
}
