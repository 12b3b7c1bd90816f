package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/internal/processor"
)

func TestExpiry(t *testing.T) {
	now := time.Now()
	inDays := func(days int) time.Time { return now.AddDate(0, 0, days) }
	old, next := certificatetest.NewAuthorityUntil(t, inDays(5)), certificatetest.NewAuthorityUntil(t, inDays(300))
	server, key := next.Sign(t, inDays(20), "server")
	junk := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	for name, c := range map[string]struct {
		data map[string][]byte
		days int // 0: no certificate
	}{
		"no data":                 {},
		"a key":                   {data: map[string][]byte{"tls.key": key}},
		"a truncated certificate": {data: map[string][]byte{"tls.crt": server[:100]}},
		"junk":                    {data: map[string][]byte{"tls.crt": junk}},
		"a server, not its chain": {data: map[string][]byte{"tls.crt": slices.Concat(server, old.PEM, next.PEM)}, days: 20},
		"a server, after its key": {data: map[string][]byte{"all.pem": slices.Concat(key, server)}, days: 20},
		"the last authority":      {data: map[string][]byte{"ca.crt": slices.Concat(old.PEM, next.PEM, old.PEM)}, days: 300},
		"an authority after junk": {data: map[string][]byte{"ca.crt": slices.Concat([]byte("# my CA\n"), junk, old.PEM)}, days: 5},
		"the first of the values": {data: map[string][]byte{"ca.crt": old.PEM, "tls.crt": server, "tls.key": key}, days: 5},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if got := expiryOf(c.data); c.days == 0 {
				g.Expect(got).To(BeZero())
			} else {
				g.Expect(got.Unix()).To(Equal(inDays(c.days).Unix()))
			}
		})
	}
}

// TestExpiryOfJunkIsCheap: whoever writes a Secret must not occupy a worker.
func TestExpiryOfJunkIsCheap(t *testing.T) {
	g := NewWithT(t)
	for _, line := range []string{
		"-----BEGIN CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\n-----END KEY-----\n",
		"-----BEGIN CERTIFICATE-----\nA:\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		junk, best := []byte(strings.Repeat(line, 1<<20/len(line))), time.Hour
		for run := 0; run < 3 && best >= time.Second; run++ { // a busy machine makes it greater
			began := processor.Time(t)
			g.Expect(expiryOf(map[string][]byte{"ca.crt": junk})).To(BeZero())
			best = min(best, processor.Time(t)-began)
		}
		g.Expect(best).To(BeNumerically("<", time.Second), line)
	}
}
