package compute

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// node is a directory in place of the root of a node and its pod, with all that start-libvirt
// looks for.
func node(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range map[string]string{
		"run/libvirt/libvirt-sock": "",
		"dev/kvm":                  "",
		"bin/iscsiadm":             "#!/bin/sh\n",
		"bin/multipath":            "#!/bin/sh\n",
		"bin/qemu-img":             "#!/bin/sh\n",
		"bin/nova-compute":         "#!/bin/sh\nmkdir -p '" + root + "/var/lib/nova/instances/disks'\necho started\n",
		"python/libvirt.py": `class libvirtError(Exception): pass
def registerErrorHandler(handler, context): pass
def open(uri): assert uri == "qemu:///system"
`,
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "var/lib/nova"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// startOn runs start-libvirt on a node, with the umask of start-service.
func startOn(t *testing.T, root, virtType string) string {
	t.Helper()
	script := startLibvirt
	for _, path := range []string{"/run/libvirt", "/var/lib/nova", "/dev/kvm", "/dev/termination-log"} {
		script = strings.ReplaceAll(script, path, root+path)
	}
	script = strings.ReplaceAll(script, "-c "+root, "-f "+root) // only root can make a device
	command := exec.Command("sh", "-c", "umask 027; exec sh -c \"$0\" start-libvirt "+virtType, script)
	command.Env = []string{"PATH=" + root + "/bin:/usr/bin:/bin", "PYTHONPATH=" + root + "/python", "PYTHONDONTWRITEBYTECODE=1", "OS_DEFAULT__HOST=node-1"}
	output, _ := command.CombinedOutput()
	return strings.ReplaceAll(string(output), root, "")
}

func TestNodeIsCheckedBeforeTheComputeStarts(t *testing.T) {
	remove := func(path string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			t.Helper()
			if err := os.RemoveAll(filepath.Join(root, path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		change   func(*testing.T, string)
		virtType string
		want     string
	}{
		"complete":               {func(*testing.T, string) {}, "KVM", "started\n"},
		"no KVM":                 {remove("dev/kvm"), "KVM", "the node node-1 lacks the device /dev/kvm: virtType QEMU does not need it\n"},
		"no KVM needed":          {remove("dev/kvm"), "QEMU", "started\n"},
		"no qemu-img":            {remove("bin/qemu-img"), "KVM", "the node node-1 lacks the program qemu-img of the image\n"},
		"no state":               {remove("var/lib/nova"), "KVM", "the node node-1 lacks a directory /var/lib/nova that user "},
		"no module":              {libvirtThat(`raise ImportError`), "KVM", "the node node-1 lacks the Python module libvirt of the image\n"},
		"no socket":              {remove("run/libvirt/libvirt-sock"), "KVM", "the node node-1 lacks a socket of libvirt in /run/libvirt that user "},
		"a user libvirt refuses": {libvirtThat(refuses), "KVM", ": Failed to find user record for uid '42436'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := node(t)
			test.change(t, root)
			if got := startOn(t, root, test.virtType); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// refuses is a libvirt that accepts no connection.
const refuses = `class libvirtError(Exception): pass
def registerErrorHandler(handler, context): pass
def open(uri): raise libvirtError("Failed to find user record for uid '42436'")
`

func libvirtThat(does string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "python", "libvirt.py"), []byte(does), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQEMUCanOpenDisks: QEMU runs as another user than Nova.
func TestQEMUCanOpenDisks(t *testing.T) {
	root := node(t)
	startOn(t, root, "QEMU")
	for _, path := range []string{"var/lib/nova/instances", "var/lib/nova/instances/disks"} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o005 != 0o005 {
			t.Errorf("%s has mode %s, in which other users cannot open a file", path, info.Mode())
		}
	}
}
