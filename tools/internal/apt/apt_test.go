package apt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine has an apt-get, and returns what Install runs. Each command fails whose number is
// among those.
func machine(t *testing.T, failing ...int) ([]string, error) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("ASTERISM_CACHE", folder)
	t.Setenv("PATH", folder)
	if err := os.WriteFile(filepath.Join(folder, "apt-get"), nil, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	var ran []string
	err := Install(func(name string, args ...string) error {
		ran = append(ran, name+" "+strings.Join(args, " "))
		for _, number := range failing {
			if number == len(ran) {
				return errors.New("failed")
			}
		}
		return nil
	}, "one", "two")
	return ran, err
}

func TestListsAreRefreshedAfterAFailure(t *testing.T) {
	const install = "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends one two"
	for _, c := range []struct {
		about   string
		failing []int
		want    []string
		fails   bool
	}{
		{"all goes well", nil, []string{install}, false},
		{"the lists are stale", []int{1}, []string{install, "apt-get update", install}, false},
		{"the network is down", []int{1, 2}, []string{install, "apt-get update"}, true},
		{"a package does not exist", []int{1, 3}, []string{install, "apt-get update", install}, true},
	} {
		ran, err := machine(t, c.failing...)
		if strings.Join(ran, "\n") != strings.Join(c.want, "\n") || (err != nil) != c.fails {
			t.Errorf("%s: got %q, %v", c.about, ran, err)
		}
	}
}

func TestOtherSystemsAreToldThePackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Install(func(string, ...string) error { t.Error("runs a command"); return nil }, "one", "two")
	if err == nil || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("got %v", err)
	}
}
