package main

import (
	"strings"
	"testing"
)

func TestAFullDiskIsRefused(t *testing.T) {
	if err := checkSpace("/node", minFreeSpace); err != nil {
		t.Errorf("a disk with enough space is refused: %v", err)
	}
	err := checkSpace("/node", 1<<30)
	if err == nil {
		t.Fatal("a disk with 1 GiB is not refused")
	}
	for _, part := range []string{"/node", "1.0 GiB", "5 GiB", "remove files"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q: %v", part, err)
		}
	}
}
