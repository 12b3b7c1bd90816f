package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// A child that is not complete, or does not go away, is looked into after
// explainAfter, and then again and again: every explainSoon at the latest, and
// after explainLong every explainRarely.
const (
	explainAfter  = 5 * time.Second
	explainSoon   = 10 * time.Second
	explainLong   = 10 * time.Minute
	explainRarely = time.Minute
)

// Explanations remembers what was found to keep objects from being complete.
type Explanations struct {
	mu    sync.Mutex
	known map[types.UID]map[observe.Key]explanation // by owner
}

type explanation struct {
	since, asked time.Time
	text         string
}

// NewExplanations of a controller.
func NewExplanations() *Explanations {
	return &Explanations{known: map[types.UID]map[observe.Key]explanation{}}
}

func (e *Explanations) forget(owner types.UID, key observe.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known[owner], key)
}

// Forget what was found for the children of an owner that is gone.
func (e *Explanations) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, owner)
}

// Remembered counts what is remembered, for tests of what is forgotten.
func (e *Explanations) Remembered() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	count := 0
	for _, known := range e.known {
		count += len(known)
	}
	return count
}

// ofOrStart returns what is known of a child, and after how long it is to be looked
// into again. The time of a child that is not known begins now.
func (e *Explanations) ofOrStart(owner types.UID, key observe.Key) (known explanation, due time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.known[owner][key]
	if !ok {
		known.since = time.Now()
		e.set(owner, key, known)
	}
	if known.asked.IsZero() {
		return known, explainAfter - time.Since(known.since)
	}
	interval := min(max(time.Since(known.since)/2, explainAfter), explainSoon)
	if time.Since(known.since) > explainLong {
		interval = explainRarely
	}
	return known, interval - time.Since(known.asked)
}

func (e *Explanations) note(owner types.UID, key observe.Key, known explanation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(owner, key, known)
}

func (e *Explanations) set(owner types.UID, key observe.Key, known explanation) {
	if e.known[owner] == nil {
		e.known[owner] = map[observe.Key]explanation{}
	}
	e.known[owner][key] = known
}

// explained adds the cause to the outcome of a child that is not complete. The
// child's own Explain finds the cause, or else its pods tell it.
func (c *Children) explained(ctx context.Context, key observe.Key, obj client.Object, explain Explain, incomplete error) error {
	owner := c.Owner.GetUID()
	if incomplete == nil {
		c.Explanations.forget(owner, key)
		return nil
	}
	if explain == nil && podSelector(obj) == nil {
		return incomplete
	}
	known, due := c.Explanations.ofOrStart(owner, key)
	if due <= 0 {
		known.text, known.asked = c.ask(ctx, explain, obj), time.Now()
		c.Explanations.note(owner, key, known)
		due = explainAfter
	}
	outcome := *OutcomeOf(incomplete)
	if known.text != "" {
		outcome.Message += ": " + known.text
	}
	if outcome.After == 0 || due < outcome.After {
		outcome.After = due
	}
	return &outcome
}

// ask what keeps a child; a failure to find out is said in its place.
func (c *Children) ask(ctx context.Context, explain Explain, obj client.Object) string {
	if explain == nil {
		explain = c.podTrouble
	}
	ctx, cancel := context.WithTimeout(ctx, c.View.ReadTimeout)
	defer cancel()
	text, err := explain(ctx, c.View.API, obj)
	if err != nil {
		return err.Error()
	}
	return text
}
