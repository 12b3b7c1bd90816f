package main

import (
	"context"
	"strings"
	"testing"

	"asterism.dev/tools/internal/cpu"
	"asterism.dev/tools/internal/progress"
)

func TestCostsNameTheStepThatRanAProgram(t *testing.T) {
	d := &demo{root: t.TempDir(), env: []string{"PATH=/usr/bin:/bin"}}
	if err := d.makeWorkFolder(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	shown, clusters := progress.New(&out, 2), cpu.Observe()
	err := runSteps(t.Context(), shown, []step{
		{"idle", nil, func(context.Context, *progress.Line) error { return nil }},
		{"counting", nil, func(ctx context.Context, line *progress.Line) error {
			return d.run(ctx, line, command{name: "count", args: []string{"sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"}})
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := writeCosts(&out, shown, clusters); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if !strings.HasPrefix(lines[0], "STEP") || !strings.HasPrefix(lines[len(lines)-1], "total") {
		t.Errorf("got\n%s", out.String())
	}
	if !strings.HasPrefix(lines[len(lines)-2], "everything else") {
		t.Errorf("the rows do not add up to the total:\n%s", out.String())
	}
	for _, row := range shown.Ended() {
		if (row.CPU > 0) != (row.Name == "counting") {
			t.Errorf("%s used %s", row.Name, row.CPU)
		}
	}
}
