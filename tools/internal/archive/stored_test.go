package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInvalidArchiveIsRefused(t *testing.T) {
	tarOf := func(path, text string) []byte {
		content, err := Tar(Epoch, File{Path: path, Content: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"no tar":    {[]byte(strings.Repeat("x", 1024)), "not a docker archive: archive/tar: invalid tar header"},
		"no image":  {tarOf("a", ""), "manifest.json not found"},
		"no config": {tarOf("manifest.json", `[{"Config": "c", "RepoTags": ["a:1"]}]`), "file c not found"},
		"no tag":    {tarOf("manifest.json", `[{"Config": "c"}]`), "has no tag"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image.tar")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
