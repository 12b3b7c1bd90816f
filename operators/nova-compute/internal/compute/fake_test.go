package compute

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFakeDriver starts a stand-in of nova-compute, which prints its name and its driver, with
// the classes of release 26 and of later ones.
func TestFakeDriver(t *testing.T) {
	const old = "class FakeDriver: pass\n"
	for classes, want := range map[string]string{
		old: "nova-compute FakeDriver\n",
		old + "class FakeDriverWithoutFakeNodes(FakeDriver): pass\n": "nova-compute FakeDriverWithoutFakeNodes\n",
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{
			"nova/cmd/compute.py": "import sys\ndef main():\n    from nova.virt import fake\n    print(sys.argv[0], fake.FakeDriver.__name__)\n",
			"nova/virt/fake.py":   classes,
		} {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "-c", startFake)
		command.Env = append(os.Environ(), "PYTHONPATH="+folder)
		if output, err := command.CombinedOutput(); err != nil || string(output) != want {
			t.Errorf("got %q, %v, want %q", output, err, want)
		}
	}
}
