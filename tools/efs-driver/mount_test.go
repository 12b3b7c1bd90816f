package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRequestOfMount(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want request
		err  string
	}{
		"as mount(8) calls it": {
			args: "fs-0000000a:/ /target -o rw,accesspoint=fsap-0000000b,tls",
			want: request{fileSystem: "fs-0000000a", accessPoint: "fsap-0000000b", target: "/target"},
		},
		"read-only, with other options": {
			args: "fs-0000000a:/ /target -n -o ro,accesspoint=fsap-0000000b,tls,noresvport",
			want: request{fileSystem: "fs-0000000a", accessPoint: "fsap-0000000b", target: "/target", readOnly: true},
		},
		"no target":           {args: "fs-0000000a:/ -o accesspoint=fsap-0000000b,tls", err: "usage"},
		"no access point":     {args: "fs-0000000a:/ /target -o tls", err: `accesspoint=""`},
		"a path as a system":  {args: "fs-../etc:/ /target -o accesspoint=fsap-0000000b,tls", err: "not the ID of a file system"},
		"a path as a point":   {args: "fs-0000000a:/ /target -o accesspoint=fsap-../../b,tls", err: "not the ID of an access point"},
		"a path in the point": {args: "fs-0000000a:/etc /target -o accesspoint=fsap-0000000b,tls", err: "the access point defines the path"},
		"without TLS":         {args: "fs-0000000a:/ /target -o accesspoint=fsap-0000000b", err: "with option tls"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRequest(strings.Fields(c.args))
			switch {
			case c.err == "" && (err != nil || got != c.want):
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

// TestTwoMountsShareFiles runs itself again as root in new namespaces. The reader uses the
// mount that propagates from the driver's pod to the node.
func TestTwoMountsShareFiles(t *testing.T) {
	const inside = "EFS_DRIVER_TEST_INSIDE"
	if os.Getenv(inside) == "" {
		again := exec.Command("unshare", "--user", "--map-root-user", "--mount", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		if output, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	runtime.LockOSThread()
	root, writer, reader := t.TempDir(), t.TempDir(), filepath.Join(node(t), "reader")
	r := request{fileSystem: "fs-0000000a", accessPoint: "fsap-0000000b", target: writer}
	must(t, r.mount(root))
	t.Cleanup(func() { must(t, unix.Unmount(writer, unix.MNT_DETACH)) })
	r.target, r.readOnly = filepath.Join(pod(t, filepath.Dir(reader)), "reader"), true
	must(t, os.Mkdir(r.target, 0o755))
	must(t, r.mount(root))

	must(t, os.WriteFile(filepath.Join(writer, "file"), []byte("content"), 0o600))
	seen, err := os.ReadFile(filepath.Join(reader, "file"))
	if err != nil || string(seen) != "content" {
		t.Errorf("the reader reads %q, %v", seen, err)
	}
	if err := os.WriteFile(filepath.Join(reader, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("the reader of a read-only mount can write: %v", err)
	}
}

// node returns a folder with shared mounts, like the kubelet's.
func node(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	must(t, unix.Mount("tmpfs", folder, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(folder, unix.MNT_DETACH)) })
	must(t, unix.Mount("", folder, "", unix.MS_SHARED, ""))
	return folder
}

// pod mounts the node's folder at another path, like the driver's pod.
func pod(t *testing.T, node string) string {
	t.Helper()
	folder := t.TempDir()
	must(t, unix.Mount(node, folder, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(folder, unix.MNT_DETACH)) })
	return folder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
