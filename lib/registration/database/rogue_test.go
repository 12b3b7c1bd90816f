package database

import (
	"crypto/tls"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

// rogue starts a rogue MariaDB, without and with TLS.
func rogue(t *testing.T, server registrationtest.RogueMariaDB) []Server {
	t.Helper()
	signer := certificatetest.NewAuthority(t)
	pair, err := tls.X509KeyPair(signer.Sign(t, time.Now().Add(time.Hour), address))
	if err != nil {
		t.Fatal(err)
	}
	plain := registrationtest.StartRogueMariaDB(t, server)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	encrypted := registrationtest.StartRogueMariaDB(t, server)
	return []Server{
		{Address: plain, User: "u", Password: "p"},
		{Address: encrypted, User: "u", Password: "p", TLS: true, CA: signer.PEM},
	}
}

// TestColumnsBeyondMemoryAreAnError: without the error, the process ends.
func TestColumnsBeyondMemoryAreAnError(t *testing.T) {
	for _, columns := range []uint64{math.MaxUint64, 1 << 60, 1 << 20, 251} {
		for _, server := range rogue(t, registrationtest.RogueMariaDB{Answer: registrationtest.Columns(columns)}) {
			err := registrationtest.Answered(func() error { _, err := Connect(registrationtest.Context(t), server); return err })
			if _, ok := errors.AsType[*remote.Unreachable](err); !ok || !strings.Contains(err.Error(), "more than 250 columns") {
				t.Errorf("%d columns, TLS %t: got %v", columns, server.TLS, err)
			}
		}
	}
}

// TestPacketsBeyondMemoryAreAnError: the driver allocates what a header announces.
func TestPacketsBeyondMemoryAreAnError(t *testing.T) {
	for _, server := range rogue(t, registrationtest.RogueMariaDB{Answer: []byte("\x01"), Length: 1<<24 - 2}) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				err := registrationtest.Answered(func() error { _, err := Connect(registrationtest.Context(t), server); return err })
				if _, ok := errors.AsType[*remote.Unreachable](err); !ok || !strings.Contains(err.Error(), "packet of 16777214 bytes") {
					t.Errorf("TLS %t: got %v", server.TLS, err)
				}
			})
		}
		all.Wait()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20 {
			t.Errorf("TLS %t: %d MiB were allocated", server.TLS, got>>20)
		}
	}
}
