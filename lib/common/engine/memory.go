package engine

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// effect is the last success of a Do.
type effect struct {
	inputs   string
	observed Observed
	at       time.Time
}

// memory keeps the effects of each object's stages. Losing it costs one
// idempotent repetition.
type memory struct {
	mu      sync.Mutex
	effects map[reconcile.Request]map[string]effect
}

func newMemory() *memory { return &memory{effects: map[reconcile.Request]map[string]effect{}} }

func (m *memory) get(request reconcile.Request, stage string) (effect, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.effects[request][stage]
	return found, ok
}

func (m *memory) set(request reconcile.Request, stage string, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects[request] == nil {
		m.effects[request] = map[string]effect{}
	}
	m.effects[request][stage] = e
}

func (m *memory) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.effects, request)
}
