package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"asterism.dev/tools/internal/archive"
)

func TestArchiveIsIdentifiedByTagAndContent(t *testing.T) {
	dir := t.TempDir()
	digests := map[string]string{}
	for name, program := range map[string]string{"one": "program", "same": "program", "other": "another program"} {
		binary, output := filepath.Join(dir, name), filepath.Join(dir, name+".tar")
		if err := os.WriteFile(binary, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := writePauseImage(output, "example.test/pause:1", binary); err != nil {
			t.Fatal(err)
		}
		images, err := archive.Read(output)
		if err != nil {
			t.Fatal(err)
		}
		if len(images) != 1 || !slices.Equal(images[0].Tags, []string{"example.test/pause:1"}) {
			t.Fatalf("read back: %v", images)
		}
		digests[name] = images[0].Digest
	}
	if digests["one"] != digests["same"] || digests["one"] == digests["other"] {
		t.Errorf("equal content must have equal digests, other content another one: %v", digests)
	}
}
