package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"asterism.dev/tools/internal/cpu"
)

// slowest is the number of specs in the table.
const slowest = 20

func table(out io.Writer, record string, reports []string) error {
	rows, err := readRecord(record)
	if err != nil {
		return err
	}
	total := cpu.Row{Name: "total"}
	for _, row := range rows {
		total.Wall, total.CPU = total.Wall+row.Wall, total.CPU+row.CPU
	}
	if err := cpu.WriteTable(out, append(rows, total)...); err != nil {
		return err
	}
	var specs []spec
	for _, path := range reports {
		found, err := readSpecs(path)
		if err != nil {
			return err
		}
		specs = append(specs, found...)
	}
	slices.SortStableFunc(specs, func(a, b spec) int { return cmp.Compare(b.RunTime, a.RunTime) })
	for i, spec := range specs[:min(slowest, len(specs))] {
		if i == 0 {
			_, _ = fmt.Fprintln(out, "\nThe slowest specs:")
		}
		if _, err := fmt.Fprintf(out, "%8.1f s  %s\n", spec.RunTime.Seconds(), spec); err != nil {
			return err
		}
	}
	return nil
}

// readRecord reads the lines of measure. A name may contain blanks.
func readRecord(path string) (rows []cpu.Row, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) < 3 {
			return nil, fmt.Errorf("%s: not a name and two times: %s", path, line)
		}
		name, times := words[:len(words)-2], [2]time.Duration{}
		for i, word := range words[len(words)-2:] {
			seconds, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			times[i] = time.Duration(seconds * float64(time.Second))
		}
		rows = append(rows, cpu.Row{Name: strings.Join(name, " "), Wall: times[0], CPU: times[1]})
	}
	return rows, nil
}

// spec is a spec, or the preparation of a suite, in a report of Ginkgo.
type spec struct {
	Containers []string `json:"ContainerHierarchyTexts"`
	Text       string   `json:"LeafNodeText"`
	Type       string   `json:"LeafNodeType"`
	RunTime    time.Duration
}

func (s spec) String() string {
	return strings.Join(append(slices.Clone(s.Containers), cmp.Or(s.Text, s.Type)), ": ")
}

// readSpecs reads a file that ginkgo --json-report has written.
func readSpecs(path string) (specs []spec, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("%s is no report of ginkgo --json-report: %w", path, err)
	}
	for _, suite := range suites {
		specs = append(specs, suite.SpecReports...)
	}
	return specs, nil
}
