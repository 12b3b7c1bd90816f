package operator

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What is alive may grow to roomyHeap before garbage is collected, within bounds: an
// operator whose caches are small collects rarely, and one whose caches are large holds
// little more than these. The least growth bounds what collecting costs, and the most
// growth what it saves.
const (
	roomyHeap   = 32 << 20
	leastGrowth = 20  // in percent
	mostGrowth  = 100 // in percent
)

// When nothing was collected for so many looks, the system gets back what is not
// needed: much was going on, and now nothing is.
const (
	heapLook = time.Second
	heapRest = 3
)

// boundHeap for as long as the process runs, unless its GOGC is set. A GOMEMLIMIT
// applies as well.
func boundHeap() {
	runtime.MemProfileRate = 0 // nobody asks for profiles
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	afterEachCollection(func() { debug.SetGCPercent(heapGrowth(liveHeap())) })
	go giveBack()
}

// afterEachCollection because a heap that fills, as at the start, doubles between two
// looks at it.
func afterEachCollection(do func()) {
	type garbage struct{ _ *byte } // with a pointer: what has none may be kept with others
	runtime.AddCleanup(&garbage{}, func(do func()) {
		afterEachCollection(do)
		do()
	}, do)
}

func giveBack() {
	before, rested := uint64(math.MaxUint64), 0
	for tick := time.NewTicker(heapLook); ; <-tick.C {
		live := liveHeap()
		if rested++; live != before {
			before, rested = live, 0
		}
		if rested == heapRest {
			debug.FreeOSMemory() // which collects
			before = liveHeap()
		}
	}
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
