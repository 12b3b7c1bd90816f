package config_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/internal/processor"
)

// bomb is a snippet of 1 MiB with n secret values.
func bomb(n int) []byte {
	var text strings.Builder
	text.WriteString("[a]\n")
	for i := range n {
		fmt.Fprintf(&text, "key=%06d%s\n", i, strings.Repeat("!", (1<<20-20)/n-11))
	}
	return []byte(text.String())
}

// heap returns the bytes that live on the heap.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestSecretWithTooManyValuesHidesWholeMessages: everybody may write such a Secret, and the
// masks of many passes are in the operator's memory at once.
func TestSecretWithTooManyValuesHidesWholeMessages(t *testing.T) {
	for _, values := range []int{1900, 40000} {
		data := map[string][]byte{"x": bomb(values)}
		before, start := heap(), processor.Time(t)
		var all []*config.Masks
		for range 8 {
			masks := config.NewMasks()
			masks.Add("bomb", data)
			got := masks.Hide("login with 000007" + strings.Repeat("!", 40) + " failed")
			if want := "hidden: Secret bomb has more than 256 secret values"; !strings.HasPrefix(got, want) || strings.Contains(got, "!") {
				t.Errorf("got %q, want %q", got, want)
			}
			all = append(all, masks)
		}
		if grown := int64(heap()) - int64(before); grown > 8<<20 {
			t.Errorf("%d values: 8 passes hold %d KiB", values, grown>>10)
		}
		if took := processor.Time(t) - start; took > 20*time.Second {
			t.Errorf("%d values: 8 passes took %s of the processor", values, took)
		}
		runtime.KeepAlive(all)
	}
}

func TestSecretWithTooManyBytesHidesWholeMessages(t *testing.T) {
	masks := config.NewMasks()
	masks.Add("long", map[string][]byte{"x": bomb(100)})
	if got := masks.Hide("000007"); !strings.HasPrefix(got, "hidden: Secret long has") {
		t.Errorf("got %q", got)
	}
}

// TestControlCharactersAreRemoved: a message may quote a server or a container of a tenant,
// and is read in a terminal.
func TestControlCharactersAreRemoved(t *testing.T) {
	masks := config.NewMasks()
	masks.Add("one", map[string][]byte{"password": []byte("s3\x1bcr3t")})
	const text = "a\x1b[2Jb\rc\u009b1md\u202ee\xff s3\x1bcr3t\n\tf"
	if got, want := masks.Hide(text), "a [2Jb c 1md e ***\n\tf"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongMessageIsHidden(t *testing.T) {
	masks := config.NewMasks()
	masks.Add("one", map[string][]byte{"password": []byte("s3cr3t")})
	if got := masks.Hide(strings.Repeat("s3cr3t ", 10000)); !strings.HasPrefix(got, "hidden: the message has 70000 bytes") {
		t.Errorf("got %.100q", got)
	}
}

// TestSearchStaysFast: values and messages that begin to match at every character.
func TestSearchStaysFast(t *testing.T) {
	for _, character := range []string{`\`, "!", "%", "a"} {
		masks := config.NewMasks()
		for i := range 15 {
			masks.Add("one", map[string][]byte{"password": []byte(strings.Repeat(character, 300) + fmt.Sprint("end", i))})
		}
		message := strings.Repeat(character, 4000)
		start := processor.Time(t)
		if got := masks.Hide(message); got != message {
			t.Errorf("%.20q is masked", got)
		}
		if took := processor.Time(t) - start; took > 5*time.Second {
			t.Errorf("%s took %s", character, took)
		}
	}
}
