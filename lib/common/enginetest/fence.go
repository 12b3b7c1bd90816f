package enginetest

import (
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Fence is a round tripper between an operator and the API server. It forwards a number of
// writes and drops the answer of the last write. If dies is set, it refuses all later
// requests.
type Fence struct {
	reached chan struct{}
	counts  func(Request) bool
	mu      sync.Mutex
	left    int
	dies    bool
}

// NewFence returns a Fence that forwards this number of writes, at least one.
func NewFence(writes int, dies bool) *Fence {
	return &Fence{left: writes, dies: dies, reached: make(chan struct{}), counts: Request.Writes}
}

// Counting returns the Fence, which counts only some of the writes, and forwards all others until
// the last write.
func (f *Fence) Counting(counts func(Request) bool) *Fence {
	f.counts = func(r Request) bool { return r.Writes() && counts(r) }
	return f
}

// Reached returns a channel that is closed after the last write.
func (f *Fence) Reached() <-chan struct{} { return f.reached }

// Option adds the fence to the client of an operator, see RunWith.
func (f *Fence) Option(config *rest.Config, _ *ctrl.Options) { config.Wrap(f.wrap) }

var (
	errDead = errors.New("the operator is dead")
	errLost = errors.New("connection reset by peer")
)

func (f *Fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		parsed, counted := ParseRequest(request)
		if !counted || !f.counts(parsed) {
			if f.closed() {
				return nil, errDead
			}
			return next.RoundTrip(request)
		}
		f.mu.Lock() // one write at a time, so that exactly one write is the last
		defer f.mu.Unlock()
		if f.left <= 0 && f.dies {
			return nil, errDead
		}
		response, err := next.RoundTrip(request)
		if f.left--; f.left != 0 || err != nil {
			return response, err
		}
		close(f.reached)
		_ = response.Body.Close()
		return nil, errLost
	})
}

func (f *Fence) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left <= 0 && f.dies
}
