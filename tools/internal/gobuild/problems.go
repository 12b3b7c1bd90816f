package gobuild

import (
	"strings"
)

// Problems leaves out of the output of a verbose build what is no error: the names of
// packages and modules.
func Problems(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if strings.ContainsAny(strings.TrimSpace(line), " \t") && !strings.HasPrefix(line, "go: downloading ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
