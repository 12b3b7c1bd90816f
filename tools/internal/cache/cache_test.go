package cache

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLockWaitsAndIgnoresARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path, func() { t.Error("the first lock waits") })
	if err != nil {
		t.Fatal(err)
	}
	waiting, done := make(chan bool, 1), make(chan error, 1)
	go func() {
		unlock, err := Lock(path, func() { waiting <- true })
		if err == nil {
			defer unlock()
			_, err = os.Stat(path)
		}
		done <- err
	}()
	<-waiting
	if err := os.Remove(path); err != nil { // as `down` does while it holds the lock
		t.Fatal(err)
	}
	third, err := Lock(path, func() { t.Error("the lock of a new file waits") })
	if err != nil {
		t.Fatal(err)
	}
	first()
	select {
	case <-waiting: // for the third
	case err := <-done:
		t.Fatalf("two callers hold the lock (%v)", err)
	}
	third()
	if err := <-done; err != nil {
		t.Errorf("the second caller holds the lock of a removed file: %v", err)
	}
}

func TestFolderIsThatOfTheVariable(t *testing.T) {
	root := t.TempDir()
	t.Setenv("ASTERISM_CACHE", root)
	if dir, err := Dir("bin"); err != nil || dir != filepath.Join(root, "bin") {
		t.Errorf("got %s, %v", dir, err)
	}
	t.Setenv("ASTERISM_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", root)
	if dir, err := Dir("bin"); err != nil || dir != filepath.Join(root, "asterism", "bin") {
		t.Errorf("without the variable: %s, %v", dir, err)
	}
}
