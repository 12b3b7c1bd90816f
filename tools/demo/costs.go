package main

import (
	"fmt"
	"io"

	"asterism.dev/tools/internal/cpu"
	"asterism.dev/tools/internal/progress"
)

// writeCosts shows where the time went: the parts with the most CPU time, one of which may be
// the cluster, whose processes belong to no step. The compilation of this program, which runs
// before its first line, is in no row.
func writeCosts(out io.Writer, shown *progress.Progress, clusters *cpu.Clusters) error {
	rows, all := shown.Ended(), cpu.Row{Name: "total", Wall: shown.Elapsed(), CPU: cpu.Own()}
	used, pods := clusters.Used()
	if used > 0 {
		row := cpu.Row{Name: "Kubernetes and its pods, meanwhile", Wall: all.Wall, CPU: used}
		if !pods {
			row.Name = "Kubernetes without its pods (no cgroup tells their time)"
		}
		rows, all.CPU = append(rows, row), all.CPU+used
	}
	_, _ = fmt.Fprintln(out)
	largest := cpu.Costliest(rows, 4)
	rest := cpu.Row{Name: "everything else", CPU: all.CPU}
	for _, row := range largest {
		rest.CPU -= row.CPU
	}
	return cpu.WriteTable(out, append(largest, rest, all)...)
}
