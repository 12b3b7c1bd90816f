package main

import (
	"strings"
	"testing"
	"time"
)

func TestAReleaseWithoutTheServersIsRefused(t *testing.T) {
	t.Setenv("RELEASE", "forky")
	_, err := newDemo(t.TempDir(), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "RELEASE=forky is invalid: set it to one of trixie, bookworm") {
		t.Errorf("got %v", err)
	}
}
