package novncproxy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The lines are those of /proc/net/tcp6: a listening socket, a connection of a browser at port
// 6080 in the state of the case, and a connection to port 6080 of another host.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		waits bool
	}{
		"an open console":           {"01", true},
		"a console that is closing": {"06", false},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			table := "  sl  local_address remote_address st\n" +
				"   0: 00000000000000000000000000000000:17C0 00000000000000000000000000000000:0000 0A 0\n" +
				"   1: 0000000000000000FFFF00000500F40A:17C0 0000000000000000FFFF00000100F40A:C3B2 " + c.state + " 0\n" +
				"   2: 0000000000000000FFFF00000500F40A:C3B2 0000000000000000FFFF00000700F40A:17C0 01 0\n"
			if err := os.WriteFile(filepath.Join(directory, "tcp6"), []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
			const seconds = 1
			command := exec.CommandContext(context.Background(), "sh", "drain", "6080", "1", "0")
			command.Env = append(os.Environ(), "PROBE_NET_DIR="+directory)
			began := time.Now()
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if waited := time.Since(began) >= seconds*time.Second; waited != c.waits {
				t.Errorf("drain ended after %s", time.Since(began))
			}
		})
	}
}
