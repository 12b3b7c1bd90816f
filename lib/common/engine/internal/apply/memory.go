package apply

import (
	"time"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Memory is what the passes over one object remember of its children. It needs no lock: these passes
// follow one another.
type Memory struct {
	explanations map[observe.Key]explanation // of children that are not complete
	failures     map[observe.Key]time.Time   // of Jobs, for the first time
	fights       map[observe.Key]fight       // for children that other clients change
}

// NewMemory returns an empty memory, for one object.
func NewMemory() *Memory {
	return &Memory{explanations: map[observe.Key]explanation{}, failures: map[observe.Key]time.Time{}, fights: map[observe.Key]fight{}}
}

// forget is for a child that is complete or no longer wanted.
func (m *Memory) forget(key observe.Key) {
	delete(m.explanations, key)
	delete(m.failures, key)
}

// explanation is the memory of why a child is not complete, or is not deleted yet.
type explanation struct {
	since, asked time.Time
	text         string
}

// fight is the memory of the recent writes of a child that existed. A controller that forces its
// value, as the engine does, would otherwise start a write of the engine with each of its own.
type fight struct {
	hash   string    // of the child: the write of another child restores nothing
	until  time.Time // grows by RestoreEvery with each write
	others string    // field managers
}
