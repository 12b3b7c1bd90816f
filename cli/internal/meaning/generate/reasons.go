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

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)

// readReasons returns the sections of the page, without the targets of links.
func readReasons(root string) (map[string]string, error) {
	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(troubleshooting)))
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	reason := ""
	for line := range strings.Lines(string(page)) {
		switch heading, isReason := strings.CutPrefix(line, "### "); {
		case isReason:
			reason = strings.TrimSpace(heading)
		case strings.HasPrefix(line, "#"):
			reason = ""
		case reason != "":
			reasons[reason] += plain(line)
		}
	}
	for reason, text := range reasons {
		reasons[reason] = strings.TrimSpace(text)
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%s has no headings of level 3", troubleshooting)
	}
	return reasons, nil
}

// plain returns a line of Markdown for a terminal. Lines of a block are indented.
func plain(line string) string {
	if strings.HasPrefix(line, "```") {
		return "\n"
	}
	if strings.HasPrefix(line, "|---") {
		return ""
	}
	return strings.ReplaceAll(link.ReplaceAllString(line, "$1"), "`", "")
}
