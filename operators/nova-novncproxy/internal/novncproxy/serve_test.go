package novncproxy

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The command stands for a proxy that has lost its signal.
func TestServeEndsAlthoughTheProxyIgnoresTheSignal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	serve := exec.CommandContext(ctx, "sh", "serve", "sh", "-c", "trap '' TERM; echo serving; while :; do sleep 1; done")
	serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-serve.Process.Pid, syscall.SIGKILL) }() // in a container, the end of process 1 ends the others
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "serving\n" {
		t.Fatalf("started with %q, %v", line, err)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if state, err := serve.Process.Wait(); err != nil || state.ExitCode() != 0 {
		t.Errorf("ended with %v, %v", state, err)
	}
}

func TestServeListensOnANodeWithoutIPv6(t *testing.T) {
	for file, want := range map[string]string{"if_inet6": "", "tcp": "0.0.0.0"} {
		directory := t.TempDir()
		if err := os.WriteFile(filepath.Join(directory, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "sh", "serve", "sh", "-c", `printf %s "$OS_VNC__NOVNCPROXY_HOST"`)
		command.Env = append(os.Environ(), "PROBE_NET_DIR="+directory)
		if output, err := command.Output(); err != nil || string(output) != want {
			t.Errorf("with %s, the proxy listens on %q, error %v, want %q", file, output, err, want)
		}
	}
}

func TestServeEndsWithTheStatusOfTheProxy(t *testing.T) {
	err := exec.CommandContext(t.Context(), "sh", "serve", "sh", "-c", "exit 3").Run()
	if failed := (&exec.ExitError{}); !errors.As(err, &failed) || failed.ExitCode() != 3 {
		t.Errorf("ended with %v, want status 3", err)
	}
}
