package operator

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The heap may grow to roomyHeap before garbage is collected: an operator whose
// caches are small collects rarely, and one whose caches are large holds little more
// than these. The least growth over what is alive bounds what collecting costs, and
// the most growth what it saves.
const (
	roomyHeap   = 32 << 20
	leastGrowth = 20  // in percent
	mostGrowth  = 100 // in percent
)

// heapLook is how often it is looked what is alive. What has grown meanwhile is
// collected as before, so that the collector never runs all the time.
const heapLook = time.Second

// boundHeap for as long as the process runs, unless its GOGC is set. A GOMEMLIMIT
// applies as well.
func boundHeap() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	go func() {
		now := 0
		for tick := time.NewTicker(heapLook); ; <-tick.C {
			if growth := heapGrowth(liveHeap()); growth != now {
				debug.SetGCPercent(growth)
				now = growth
			}
		}
	}()
}

// heapGrowth in percent that makes what is alive fill the roomy heap.
func heapGrowth(live uint64) int {
	growth := (float64(roomyHeap)/float64(max(live, 1)) - 1) * 100
	return int(min(max(growth, leastGrowth), mostGrowth))
}

// liveHeap is what the last collection has left, in bytes.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
