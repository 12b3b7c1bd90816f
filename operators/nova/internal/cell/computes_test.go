package cell

import (
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
