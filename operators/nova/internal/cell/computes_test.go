package cell

import (
	"strings"
	"testing"
	"time"
)

// TestComputeIsRemovableAfterAMinuteWithoutServers counts every ten seconds.
func TestComputeIsRemovableAfterAMinuteWithoutServers(t *testing.T) {
	now, seen := time.Now(), ""
	for i, servers := range []int{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1} {
		seen = occupancy(servers, seen, now.Add(time.Duration(i)*10*time.Second))
		if got, want := seen == removable, i == 11 || i == 12; got != want {
			t.Errorf("count %d, servers: %d: %s", i, servers, seen)
		}
		if got, want := seen == "servers: 1", servers == 1; got != want {
			t.Errorf("count %d, servers: %d: %s", i, servers, seen)
		}
	}
}

// TestLeavesTellsWhatToDo: a compute without servers has none that could be migrated.
func TestLeavesTellsWhatToDo(t *testing.T) {
	const migrate, keep = "migrate or delete its servers", "add it (or its cell) to the list again"
	for seen, hasServers := range map[string]bool{"servers: 2": true, "2026-01-31T03:00:00Z": false, "": false, uncounted: false} {
		message := leaves("demo-cell1-test", seen)
		if got := strings.Contains(message, migrate); got != hasServers {
			t.Errorf("%q: %s", seen, message)
		}
		if !strings.Contains(message, keep) {
			t.Errorf("%q: %s", seen, message)
		}
	}
}
