package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMapScript runs the script with a nova-manage that lists two cells and records its arguments.
func TestMapScript(t *testing.T) {
	const listed, created = "8d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a11", "9d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a22"
	for _, c := range []struct{ name, cells, uuid, want string }{
		{"a new cell", "| cell0 | 00000000-0000-0000-0000-000000000000 |", "", created},
		{"a cell with the name", "|   cell1  | " + listed + " |", "", listed},
		{"a cell with the UUID", "|  | " + listed + " |", listed, listed},
		{"another cell, whose name differs by a blank", "|  cell 1  | " + listed + " |", "", created},
		{"another cell, whose name is longer", "| cell10 | " + listed + " |", "", created},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fake := "#!/bin/sh\ncase $2 in\nlist_cells) printf '%s\\n' '+---+' '" + c.cells + "' '+---+' ;;\ncreate_cell) echo " + created + " ;;\nesac\n"
			if err := os.WriteFile(filepath.Join(dir, "nova-manage"), []byte(fake), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			result := filepath.Join(dir, "result")
			command := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(mapScript, "/dev/termination-log", result, 1), "sh", "cell1", c.uuid, "enable") //nolint:gosec // the script under test
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if uuid, err := os.ReadFile(result); err != nil || string(uuid) != c.want {
				t.Errorf("the cell is %s (%v), want %s", uuid, err, c.want)
			}
		})
	}
}
