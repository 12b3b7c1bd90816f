package cpu

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Row is a measured part of a command.
type Row struct {
	Name      string
	Wall, CPU time.Duration
}

// Costliest returns the rows with the most CPU time.
func Costliest(rows []Row, count int) []Row {
	rows = slices.SortedStableFunc(slices.Values(rows), func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Wall, a.Wall))
	})
	return rows[:min(count, len(rows))]
}

// WriteTable writes a line for each row.
func WriteTable(out io.Writer, rows ...Row) error {
	const width = 56
	if _, err := fmt.Fprintf(out, "%-*s %10s %10s\n", width, "STEP", "WALL s", "CPU s"); err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(out, "%-*.*s %10.0f %10.0f\n", width, width, row.Name, row.Wall.Seconds(), row.CPU.Seconds()); err != nil {
			return err
		}
	}
	return nil
}
