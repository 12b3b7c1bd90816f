package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoSecretIsPrinted looks for every password of the world broken in the outputs of the
// commands.
func TestNoSecretIsPrinted(t *testing.T) {
	text := replay(t, "testdata/unprepared", []string{"check"})
	for _, arguments := range []string{"report --file -", "status", "status -o json", "cells", "events", "explain controlplane/demo", "explain novaconductor/demo-cell1-conductor", "logs --previous"} {
		text += replay(t, "testdata/broken", strings.Fields(arguments))
	}
	for _, secret := range []string{
		"c4n4ry", "hunter2", "snippet-password", "bare-argument", "joined-argument", "variable-password", "event-password", "quoted-without-form", "ended-password",
		"json-password", "bus-p@ss", "gAAAAA", "eyJhbGci", "the-private-key-of-the-client",
		"first-of-the-signing-keys", "second-of-the-signing-keys", "bG9nZ2VkLWtleQ",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("an output contains %q", secret)
		}
		if world(t, "testdata/broken", secret) == 0 {
			t.Errorf("the world does not contain %q, so this test proves nothing", secret)
		}
	}
}

// world counts a text in the files of a world.
func world(t *testing.T, folder, text string) int {
	t.Helper()
	count := 0
	for _, pattern := range []string{"in.yaml", "logs/*"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			count += strings.Count(string(content), text)
		}
	}
	return count
}

func TestReportFileIsCompleteAndPrivate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.tar.gz")
	var out, errOut bytes.Buffer
	if code := run(context.Background(), []string{"report", "--file", name}, newTestEnvironment(t, "testdata/broken", &out, &errOut)); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if out.String() != name+"\n" {
		t.Errorf("the standard output is %q, want the name of the file", out.String())
	}
	state, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if state.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, want 0600", state.Mode().Perm())
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !strings.Contains(unpack(t, file), "Everything was read.") {
		t.Error("the archive has no file unread.txt")
	}
}

// TestNoSecretIsInADiff: the parts of the world snippet and the new snippet have passwords.
func TestNoSecretIsInADiff(t *testing.T) {
	text := replay(t, "testdata/snippet", strings.Fields("config diff demo-scheduler-0 --snippet testdata/snippet/new.conf"))
	if !strings.Contains(text, "+ password = ***  # 90-custom.conf") {
		t.Errorf("the diff lacks the changed password:\n%s", text)
	}
	for _, secret := range []string{"c4n4ry", "hunter2"} {
		if strings.Contains(text, secret) {
			t.Errorf("the diff contains %q:\n%s", secret, text)
		}
	}
}
