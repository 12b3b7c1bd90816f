package workload

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// listening and elsewhere are lines of /proc/net/tcp6: a socket that listens at port 6080, and a
// connection to port 6080 of another host. consoleIn is a browser's connection in a state.
const (
	listening = "   0: 00000000000000000000000000000000:17C0 00000000000000000000000000000000:0000 0A 0\n"
	consoleIn = "   1: 0000000000000000FFFF00000500F40A:17C0 0000000000000000FFFF00000100F40A:C3B2 "
	elsewhere = "   2: 0000000000000000FFFF00000500F40A:C3B2 0000000000000000FFFF00000700F40A:17C0 01 0\n"

	established, timeWait = "01", "06"
)

// TestDrain replaces sleep by a program that records its argument, so that the test does not
// depend on the speed of the machine.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		state string // of the console
		end   string // number of the sleep during which the console closes
		slept string
	}{
		"an open console":           {established, "none", "7\n1\n1\n1\n"},
		"a console that closes":     {established, "3", "7\n1\n1\n"},
		"a console that is closing": {timeWait, "none", "7\n"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			table, slept := filepath.Join(directory, "tcp6"), filepath.Join(directory, "slept")
			write(t, table, listening+consoleIn+c.state+" 0\n"+elsewhere)
			write(t, filepath.Join(directory, "closed"), listening+consoleIn+timeWait+" 0\n"+elsewhere)
			write(t, filepath.Join(directory, "sleep"), `#!/bin/sh
cd "$PROBE_NET_DIR" && echo "$1" >>slept
[ "$(wc -l <slept)" != "$CLOSES_AT" ] || mv closed tcp6
`)
			command := exec.CommandContext(t.Context(), "sh", "scripts/drain", "6080", "3", "7")
			command.Env = append(os.Environ(), "PROBE_NET_DIR="+directory, "CLOSES_AT="+c.end, "PATH="+directory+":"+os.Getenv("PATH"))
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if got, err := os.ReadFile(slept); err != nil || string(got) != c.slept {
				t.Errorf("drain slept %q, error %v, want %q", got, err, c.slept)
			}
		})
	}
}

// TestDrainWaitsForConnectionsThatWait reads the kernel's tables. The server never accepts.
func TestDrainWaitsForConnectionsThatWait(t *testing.T) {
	var network net.ListenConfig
	server, err := network.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	slept := func() string {
		t.Helper()
		directory := t.TempDir()
		write(t, filepath.Join(directory, "sleep"), "#!/bin/sh\nprintf '%s ' $1\n")
		command := exec.CommandContext(t.Context(), "sh", "scripts/drain", port, "2", "7")
		command.Env = append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return string(output)
	}
	if got := slept(); got != "7 " {
		t.Errorf("without a connection, drain slept %q", got)
	}
	var dialer net.Dialer
	waiting, err := dialer.DialContext(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = waiting.Close() }()
	if got := slept(); got != "7 1 1 " {
		t.Errorf("with a connection that the server has not accepted, drain slept %q", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}
