package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage checks that each example with a prompt in docs/cli.md is in a transcript, so that
// the page shows outputs of the program. An example may be the beginning of an output.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var transcripts strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		transcripts.Write(content)
	}
	examples := 0
	for i, block := range strings.Split(string(page), "\n```") {
		if text := strings.TrimPrefix(block, "\n"); i%2 == 1 && strings.HasPrefix(text, prompt) {
			examples++
			if !strings.Contains(transcripts.String(), text+"\n") {
				t.Errorf("no transcript contains this example:\n%s", text)
			}
		}
	}
	if examples < 5 {
		t.Errorf("the page has %d examples", examples)
	}
}
