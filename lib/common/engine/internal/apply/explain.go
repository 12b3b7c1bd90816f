package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// A child that is not complete, or whose deletion takes long, is examined every
// explainEvery, and after explainLong every explainRarely.
const (
	explainEvery  = 5 * time.Second
	explainLong   = 10 * time.Minute
	explainRarely = time.Minute
)

// Explanations remembers why objects are not complete, or are not deleted yet.
type Explanations struct {
	fights
	mu    sync.Mutex
	known map[types.UID]map[observe.Key]explanation // by owner
}

type explanation struct {
	since, asked time.Time
	failed       time.Time // of a Job, for the first time
	text         string
}

// NewExplanations returns an empty memory, for one controller.
func NewExplanations(restoresAtOnce int, restoreEvery time.Duration) *Explanations {
	return &Explanations{fights: fights{atOnce: restoresAtOnce, every: restoreEvery, recent: map[types.UID]map[observe.Key]fight{}}, known: map[types.UID]map[observe.Key]explanation{}}
}

func (e *Explanations) forget(owner types.UID, key observe.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known[owner], key)
}

// Forget removes the explanations for the children of a deleted owner.
func (e *Explanations) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, owner)
	e.settle(owner)
}

// Remembered counts the explanations, so that tests can verify that they are removed.
func (e *Explanations) Remembered() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	count := 0
	for _, known := range e.known {
		count += len(known)
	}
	return count
}

// ofOrStart returns the explanation for a child, and the time until the child is examined
// again. The time of a new child begins now.
func (e *Explanations) ofOrStart(owner types.UID, key observe.Key) (known explanation, due time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known = e.known[owner][key]
	if known.since.IsZero() {
		known.since = time.Now()
		e.set(owner, key, known)
	}
	if known.asked.IsZero() {
		return known, explainEvery - time.Since(known.since)
	}
	interval := explainEvery
	if time.Since(known.since) > explainLong {
		interval = explainRarely
	}
	return known, interval - time.Since(known.asked)
}

// firstFailure returns the time of the first failure of a Job since it was complete; failed is
// the time of its last failure.
func (e *Explanations) firstFailure(owner types.UID, key observe.Key, failed time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.known[owner][key]
	if known.failed.IsZero() {
		known.failed = failed
		e.set(owner, key, known)
	}
	return known.failed
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

// explained adds the cause to the outcome of a child that is not complete. The cause is
// found by the child's Explain or, if that finds none, in the status of its pods.
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
		known.text, known.asked = c.explanationOf(ctx, explain, obj), time.Now()
		c.Explanations.note(owner, key, known)
		due = explainEvery
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

// explanationOf returns the cause, or the error that prevented finding it.
func (c *Children) explanationOf(ctx context.Context, explain Explain, obj client.Object) string {
	ctx, cancel := context.WithTimeout(ctx, c.View.ReadTimeout)
	defer cancel()
	for _, find := range []Explain{explain, c.podProblem} {
		if find == nil {
			continue
		}
		text, err := find(ctx, c.View.API, obj)
		if err != nil {
			return err.Error()
		}
		if text != "" {
			return text
		}
	}
	return ""
}
