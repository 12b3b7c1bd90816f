package install

import (
	"context"
	"testing"
	"time"
)

// TestAwaitReportsTheLastState when the time ends during a request.
func TestAwaitReportsTheLastState(t *testing.T) {
	p := &planner{Options: Options{Timeout: interval + 100*time.Millisecond}}
	first := true
	err := p.await(t.Context(), func(string) {}, func(ctx context.Context) (bool, string, error) {
		if first {
			first = false
			return false, "the Subscription is not resolved", nil
		}
		<-ctx.Done()
		return false, "the Subscription does not exist", ctx.Err()
	})
	if want := "not complete after 1.1s: the Subscription is not resolved"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
