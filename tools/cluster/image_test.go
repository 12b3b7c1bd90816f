package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestArchiveIsIdentifiedByTagAndContent(t *testing.T) {
	dir := t.TempDir()
	digests := map[string]string{}
	for name, program := range map[string]string{"one": "program", "same": "program", "other": "another program"} {
		binary, archive := filepath.Join(dir, name), filepath.Join(dir, name+".tar")
		if err := os.WriteFile(binary, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := writePauseImage(archive, "example.test/pause:1", binary); err != nil {
			t.Fatal(err)
		}
		images, err := readArchive(archive)
		if err != nil {
			t.Fatal(err)
		}
		if len(images) != 1 || !slices.Equal(images[0].tags, []string{"example.test/pause:1"}) {
			t.Fatalf("read back: %v", images)
		}
		digests[name] = images[0].digest
	}
	if digests["one"] != digests["same"] || digests["one"] == digests["other"] {
		t.Errorf("equal content must have equal digests, other content another one: %v", digests)
	}
}

func TestInvalidArchiveIsRefused(t *testing.T) {
	tarOf := func(files map[string][]byte) []byte {
		content, err := tarball(files)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"no tar":    {[]byte(strings.Repeat("x", 1024)), "not a tar archive"},
		"no image":  {tarOf(map[string][]byte{"a": nil}), "contains no manifest.json"},
		"no config": {tarOf(map[string][]byte{"manifest.json": []byte(`[{"Config": "c", "RepoTags": ["a:1"]}]`)}), "contains no c"},
		"no tag":    {tarOf(map[string][]byte{"manifest.json": []byte(`[{"Config": "c"}]`)}), "has no tag"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image.tar")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readArchive(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
