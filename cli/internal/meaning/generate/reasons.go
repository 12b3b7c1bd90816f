package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// troubleshooting is the page with one section of level 3 for each reason. tools/docs checks
// that the sections are those of all reasons.
const troubleshooting = "docs/troubleshooting.md"

var (
	link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	// header is the header of a table.
	header = regexp.MustCompile(`(?m)^\|.*\n\|---.*\n`)
)

// readReasons returns the sections of the page, without the targets of links.
func readReasons(root string) (map[string]string, error) {
	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(troubleshooting)))
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for _, section := range strings.Split("\n"+string(page), "\n### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ") // the next section of level 2
		reasons[strings.TrimSpace(heading)] = plain(text)
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%s has no headings of level 3", troubleshooting)
	}
	return reasons, nil
}

// plain returns a text of Markdown for a terminal: commands are indented, and a row of a
// table is a line of a list.
func plain(text string) string {
	var out strings.Builder
	block := false
	for line := range strings.Lines(header.ReplaceAllString(text, "")) {
		switch {
		case strings.HasPrefix(line, "```"):
			block = !block
			line = "\n"
		case block:
			line = "    " + line
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			line = "- " + strings.TrimSpace(cells[0]) + ": " + strings.TrimSpace(strings.Join(cells[1:], " ")) + "\n"
			fallthrough
		default:
			line = strings.ReplaceAll(link.ReplaceAllString(line, "$1"), "`", "")
		}
		out.WriteString(line)
	}
	return strings.TrimSpace(out.String())
}
