package registrationtest

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// RogueMariaDB is a server that accepts every login, and answers each query with Answer, a packet
// without its header. StartRogueMariaDB starts it.
type RogueMariaDB struct {
	Answer []byte
	Length int         // that the header announces; 0: that of Answer
	TLS    *tls.Config // nil: without TLS
}

// Columns is the answer to a query that announces columns, in the longest encoding.
func Columns(count uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{0xfe}, count) }

// StartRogueMariaDB returns the host:port of the server, which runs until the test ends.
func StartRogueMariaDB(t testing.TB, rogue RogueMariaDB) string {
	t.Helper()
	listener := Listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the client sees it
				rogue.serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

const (
	withTLS   = 0x0800
	loginDone = "\x00\x00\x00\x02\x00\x00\x00"
)

func (r RogueMariaDB) serve(conn net.Conn) {
	capabilities := uint16(0xf7ff)
	if r.TLS != nil {
		capabilities |= withTLS
	}
	greeting := []byte("\x0a10.11.0-MariaDB\x00\x01\x00\x00\x0012345678\x00")
	greeting = binary.LittleEndian.AppendUint16(greeting, capabilities)
	greeting = append(greeting, "\x21\x02\x00\x0f\x00\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00mysql_native_password\x00"...)
	writeMySQL(conn, 0, greeting, 0)
	sequence, _, err := readMySQL(conn)
	if err == nil && r.TLS != nil {
		conn = tls.Server(conn, r.TLS)
		sequence, _, err = readMySQL(conn)
	}
	writeMySQL(conn, sequence+1, []byte(loginDone), 0)
	for err == nil {
		var query []byte
		sequence, query, err = readMySQL(conn)
		switch {
		case bytes.Contains(query, []byte("SET ")):
			writeMySQL(conn, sequence+1, []byte(loginDone), 0)
		default:
			writeMySQL(conn, sequence+1, r.Answer, r.Length)
		}
	}
}

// writeMySQL writes one packet. A length other than 0 replaces that of the payload.
func writeMySQL(to io.Writer, sequence byte, payload []byte, length int) {
	if length == 0 {
		length = len(payload)
	}
	header := []byte{byte(length), byte(length >> 8), byte(length >> 16), sequence}
	_, _ = to.Write(append(header, payload...)) // the client sees a broken connection
}

func readMySQL(from io.Reader) (sequence byte, payload []byte, err error) {
	var header [4]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err = io.ReadFull(from, payload)
	return header[3], payload, err
}

// RogueKeystone accepts every login, and answers each list with pages of empty objects, each
// of which names a next page.
func RogueKeystone(objects int) http.Handler {
	page := "[" + strings.Repeat("{},", objects-1) + "{}]"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch kind := strings.TrimPrefix(r.URL.Path, "/v3/"); kind {
		case "auth/tokens":
			w.Header().Set("X-Subject-Token", "t")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token":{"roles":[],"expires_at":"2099-01-01T00:00:00.000000Z"}}`)
		case "domains":
			_, _ = io.WriteString(w, `{"domains":[{"id":"d","name":"Default"}],"links":{}}`)
		default:
			_, _ = fmt.Fprintf(w, `{%q:%s,"links":{"next":"http://%s%s?next"}}`, kind, page, r.Host, r.URL.Path)
		}
	})
}

// WatchHeap returns a function that returns the most bytes that were on the heap since, and
// ends the watch.
func WatchHeap() (peak func() uint64) {
	runtime.GC()
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most.Store(max(most.Load(), stats.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return most.Load()
	}
}
