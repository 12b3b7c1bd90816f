package compute

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFakeDriver starts a stand-in of nova-compute, which loads its driver as Nova does, with the
// classes of release 26 and of later ones.
func TestFakeDriver(t *testing.T) {
	const (
		old    = "class FakeDriver:\n    def __init__(self, api): super(FakeDriver, self).__init__()\n"
		newer  = old + "class FakeDriverWithoutFakeNodes(FakeDriver): pass\n"
		driver = "from nova.virt import fake\ndef load_compute_driver(api, name=None):\n    return getattr(fake, (name or 'fake.FakeDriver').removeprefix('fake.'))(api)\n"
		main   = "import sys\nfrom nova.virt import driver\ndef main():\n    print(sys.argv[0], type(driver.load_compute_driver(None, None)).__name__)\n"
	)
	for classes, want := range map[string]string{old: "nova-compute FakeDriver\n", newer: "nova-compute FakeDriverWithoutFakeNodes\n"} {
		folder := t.TempDir()
		for name, content := range map[string]string{"nova/cmd/compute.py": main, "nova/virt/driver.py": driver, "nova/virt/fake.py": classes} {
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
