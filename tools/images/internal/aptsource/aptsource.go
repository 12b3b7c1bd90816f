// Package aptsource reads the package mirrors of a Debian machine.
package aptsource

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Source is one enabled entry for binary packages, in one of the two formats of
// sources.list(5). Each suite is available at each URI.
type Source struct {
	URIs       []string
	Suites     []string
	Components []string
	SignedBy   string // path, fingerprints or an inline key; empty for apt's own keyrings
}

// Read returns the sources below an apt configuration directory, usually
// /etc/apt, in the order that apt reads them.
func Read(dir string) ([]Source, error) {
	files := []string{filepath.Join(dir, "sources.list")}
	more, err := filepath.Glob(filepath.Join(dir, "sources.list.d", "*"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	sort.Strings(more)
	var sources []Source
	for _, file := range append(files, more...) {
		found, err := readFile(file)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	return sources, nil
}

func readFile(path string) ([]Source, error) {
	parse := parseList
	switch filepath.Ext(path) {
	case ".list":
	case ".sources":
		parse = parseDeb822
	default:
		return nil, nil // apt ignores other names too
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read package sources: %w", err)
	}
	sources, err := parse(file)
	_ = file.Close() // opened for reading only
	if err != nil {
		return nil, fmt.Errorf("read package sources %s: %w", path, err)
	}
	return sources, nil
}

// parseList reads the one-line format: deb [option=value ...] uri suite component...
func parseList(r io.Reader) ([]Source, error) {
	var sources []Source
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		kind, rest, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		if kind != "deb" {
			continue
		}
		var source Source
		if options, after, found := strings.Cut(rest, "]"); found {
			for _, option := range strings.Fields(strings.TrimLeft(options, " [")) {
				if value, ok := strings.CutPrefix(option, "signed-by="); ok {
					source.SignedBy = value
				}
			}
			rest = after
		}
		words := strings.Fields(rest)
		if len(words) < 2 {
			continue
		}
		source.URIs, source.Suites, source.Components = words[:1], words[1:2], words[2:]
		sources = append(sources, source)
	}
	return sources, lines.Err()
}

// parseDeb822 reads the format of .sources files: paragraphs of "Field: value",
// where a line that begins with a space continues the field.
func parseDeb822(r io.Reader) ([]Source, error) {
	var sources []Source
	fields, last := map[string]string{}, ""
	finish := func() {
		if source, ok := fromFields(fields); ok {
			sources = append(sources, source)
		}
		fields, last = map[string]string{}, ""
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			finish()
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = strings.TrimSpace(value)
		}
	}
	finish()
	return sources, lines.Err()
}

func fromFields(fields map[string]string) (Source, bool) {
	disabled := slices.Contains([]string{"no", "false", "off", "0", "without", "disable"}, strings.ToLower(fields["enabled"]))
	if disabled || !slices.Contains(strings.Fields(fields["types"]), "deb") {
		return Source{}, false
	}
	return Source{
		URIs:       strings.Fields(fields["uris"]),
		Suites:     strings.Fields(fields["suites"]),
		Components: strings.Fields(fields["components"]),
		SignedBy:   fields["signed-by"],
	}, true
}
