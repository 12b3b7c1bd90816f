package operator

import (
	"runtime"
	"testing"
	"time"
)

func TestHeapGrowsIntoItsRoom(t *testing.T) {
	for name, test := range map[string]struct {
		live   uint64
		growth int
	}{
		"before the first collection": {live: 0, growth: 100},
		"small":                       {live: 5 << 20, growth: 100},
		"fits":                        {live: 20 << 20, growth: 60},
		"large":                       {live: 100 << 20, growth: 20},
	} {
		t.Run(name, func(t *testing.T) {
			if growth := heapGrowth(test.live); growth != test.growth {
				t.Errorf("%d %%, not %d %%", growth, test.growth)
			}
		})
	}
}

func TestHeapIsWhatIsAlive(t *testing.T) {
	const size = 32 << 20
	block := make([]byte, size)
	runtime.GC()
	with := liveHeap()
	runtime.KeepAlive(block) // and no longer
	runtime.GC()
	if without := liveHeap(); with < size || without > with-size/2 {
		t.Errorf("%d bytes with a block of %d, %d without", with, size, without)
	}
}

func TestEachCollectionIsNoticed(t *testing.T) {
	noticed := make(chan struct{}, 1)
	afterEachCollection(func() {
		select {
		case noticed <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		select {
		case <-noticed:
		case <-time.After(10 * time.Second):
			t.Fatal("a collection was not noticed")
		}
	}
}
