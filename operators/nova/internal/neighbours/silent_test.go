package neighbours

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/registration/registrationtest"
)

const (
	silent   = 40 // Novas with a server that does not answer; an operator has 32 workers
	allCalls = 8  // that run at once in one namespace
	// mostCalls bounds the connections: the server sees the end of one after the next has begun.
	mostCalls = 2 * allCalls
)

// connections counts the connections to a server.
type connections struct {
	mu         sync.Mutex
	open, most int
}

func (c *connections) add(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += number
	c.most = max(c.most, c.open)
}

func (c *connections) mostAtOnce() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// serveSilence returns the address of a server that accepts connections and never answers.
func serveSilence(t *testing.T) (address string, counted *connections) {
	t.Helper()
	listener := registrationtest.Listen(t)
	counted = &connections{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			counted.add(1)
			go func() {
				defer counted.add(-1)
				_, _ = io.Copy(io.Discard, connection) // until the client ends the connection
				_ = connection.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String(), counted
}

// attackSilently makes an operator call a server that does not answer as often as it may.
func attackSilently(t *testing.T, editor client.Client, namespace string) *connections {
	t.Helper()
	address, calls := serveSilence(t)
	for i := range silent {
		createNova(t, editor, namespace, fmt.Sprint("silent", i), map[string]any{"database": database("account", address)})
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return calls.mostAtOnce() >= allCalls, nil
	})
	if err != nil {
		t.Fatalf("a silent server had %d connections at once, want %d: %v", calls.mostAtOnce(), allCalls, err)
	}
	return calls
}
