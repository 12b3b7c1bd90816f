package apply

import (
	"context"
	"time"

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

// explanationOf returns the explanation for a child, and the time until the child is examined
// again. The time of a new child begins now.
func (m *Memory) explanationOf(key observe.Key) (known explanation, due time.Duration) {
	known = m.explanations[key]
	if known.since.IsZero() {
		known.since = time.Now()
		m.explanations[key] = known
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

// explained adds the cause to the outcome of a child that is not complete. The cause is
// found by the child's Explain or, if that finds none, in the status of its pods.
func (c *Children) explained(ctx context.Context, key observe.Key, obj client.Object, explain Explain, incomplete error) error {
	if incomplete == nil {
		c.Memory.forget(key)
		return nil
	}
	if explain == nil && podSelector(obj) == nil {
		return incomplete
	}
	known, due := c.Memory.explanationOf(key)
	if due <= 0 {
		known.text, known.asked = c.examine(ctx, explain, obj), time.Now()
		c.Memory.explanations[key] = known
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

// examine returns the cause, or the error that prevented finding it.
func (c *Children) examine(ctx context.Context, explain Explain, obj client.Object) string {
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
