package mounts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMountsAreThoseAtOrBelowTheFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	content := `1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:1 / /var/lib/kubelet rw - ext4 /dev/sda1 rw
3 2 0:5 / /var/lib/kubelet/pods/a\040b rw shared:1 - tmpfs tmpfs rw
4 1 0:6 / /var/lib/kubelet2 rw - tmpfs tmpfs rw
5 1 0:7 / /run/asterism/x rw - tmpfs tmpfs rw
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := below(path, []string{"/run/asterism", "/var/lib/kubelet"})
	want := []string{"/var/lib/kubelet", "/var/lib/kubelet/pods/a b", "/run/asterism/x"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
