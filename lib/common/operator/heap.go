package operator

import (
	"math"
	"os"
	"runtime"
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
	// besidesHeap is room for stacks, what the collector needs itself, and what is
	// free between objects. What exceeds it goes back to the system at once.
	besidesHeap = 16 << 20
)

// heapLook is how often it is looked what is alive. What has grown meanwhile is
// collected as before, so that the collector never runs all the time.
const heapLook = time.Second

// boundHeap for as long as the process runs, unless its GOGC or GOMEMLIMIT is set.
func boundHeap() {
	runtime.MemProfileRate = 0 // nobody asks for profiles
	for _, own := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, set := os.LookupEnv(own); set {
			return
		}
	}
	go func() {
		tick, before := time.NewTicker(heapLook), uint64(math.MaxUint64)
		for ; ; <-tick.C {
			if live := liveHeap(); live != before {
				debug.SetGCPercent(heapGrowth(live))
				debug.SetMemoryLimit(memoryLimit(live))
				before = live
			}
		}
	}()
}

// memoryLimit of the process without its program, in bytes.
func memoryLimit(live uint64) int64 {
	return max(int64(live)*int64(100+heapGrowth(live))/100, roomyHeap) + besidesHeap //nolint:gosec // far below
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
