package config

import (
	"encoding/base64"
	"fmt"
	"iter"
	"regexp"
	"strings"
)

// secretKey matches the keys of Secrets whose values must not be shown. Host names and
// users are shown, because messages need them.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|private|credential|connection|\.conf$|transport`)

// Everybody who may write a Secret of a namespace chooses how many secret values it has, and
// each concurrent pass holds the values of its Secrets. So Masks hold at most maxValues
// values, maxSpelledBytes of values of at most maxSpelled bytes, and maxFileBytes of longer
// ones, without their encodings in base64. 32 passes hold less than 40 MiB.
const (
	maxValues       = 256
	maxSpelledBytes = 16 << 10
	maxFileBytes    = 512 << 10
	// longestMessage bounds the messages that are searched. A longer value cannot be in one.
	longestMessage = 64 << 10
)

// Masks are the secret values of the Secrets that a pass has read. NewMasks returns Masks
// without values.
type Masks struct {
	values         map[string]bool
	spelled, files int    // bytes
	tooMany        string // the Secret whose values exceed the bounds; "": none
}

// NewMasks returns Masks that hide nothing.
func NewMasks() *Masks { return &Masks{values: map[string]bool{}} }

// Add adds the values of a Secret that must not be shown: those of keys with a secret name,
// and if a value is a snippet, those of its secret options. If the Masks would have more
// than 256 values, Hide hides whole messages from now on.
func (m *Masks) Add(secret string, data map[string][]byte) {
	for key, value := range data {
		if m.tooMany != "" {
			return
		}
		if secretKey.MatchString(key) {
			m.add(secret, value)
		}
		for found := range SnippetSecrets(string(value)) {
			m.add(secret, []byte(found))
		}
	}
}

func (m *Masks) add(secret string, value []byte) {
	for text := range Spelt(value) {
		size := &m.spelled
		if len(text) > maxSpelled {
			size = &m.files
		}
		switch {
		case m.values[text] || m.tooMany != "" || len(text) > longestMessage:
			continue
		case len(m.values) == 2*maxValues || m.spelled > 2*maxSpelledBytes || m.files > 2*maxFileBytes:
			m.values, m.tooMany = nil, secret
		default:
			m.values[strings.Clone(text)] = true
			*size += len(text)
		}
	}
}

// Spelt returns the texts to hide for a value of a Secret: the value without surrounding
// white space, because messages are trimmed, and its encoding in base64. It returns none for
// a value that is too short to be distinguished from text.
func Spelt(value []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		if text := strings.TrimSpace(string(value)); len(text) > 2 && yield(text) {
			yield(base64.StdEncoding.EncodeToString(value))
		}
	}
}

// HidesAll tells whether Hide replaces the whole message, because of a bound.
func (m *Masks) HidesAll(message string) bool {
	return message != "" && (m.tooMany != "" || len(message) > longestMessage)
}

// Hide replaces every secret value in a message, and the characters that are not Printable:
// every message of a condition, an event or a log passes here. It replaces a whole message that is longer
// than 64 KiB, and every message if a Secret has too many values.
func (m *Masks) Hide(message string) string {
	switch {
	case !m.HidesAll(message):
	case m.tooMany != "":
		return fmt.Sprintf("hidden: Secret %s has more than %d secret values, or values of more than %d KiB, which the operator would have to search in each message: "+
			"remove the keys and options that the service does not need", m.tooMany, maxValues, maxSpelledBytes>>10)
	default:
		return fmt.Sprintf("hidden: the message has %d bytes, and secret values are searched in at most %d", len(message), longestMessage)
	}
	masked := NewMasked(message)
	for value := range m.values {
		masked.Hide(value)
	}
	return Printable(masked.String())
}
