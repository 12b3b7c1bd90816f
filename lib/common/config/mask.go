package config

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// secretKey matches the keys of Secrets whose values must not be shown. Host names and
// users are shown, because messages need them.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|private|credential|connection|\.conf$|transport`)

// maxSpelled bounds the values that are searched in every spelling, in bytes: a password or
// a URL. A longer value is a file.
const maxSpelled = 512

// Masks are secret values. Each value has the pattern that finds it, nil until its first
// use.
type Masks map[string]*regexp.Regexp

// Add adds the values of a Secret that must not be shown, without surrounding white space,
// because messages are trimmed. If a value is a snippet, the values of its secret options
// must not be shown either.
func (m Masks) Add(data map[string][]byte) {
	for key, value := range data {
		if secretKey.MatchString(key) {
			m.add(string(value))
		}
		for _, secret := range snippetSecrets(string(value)) {
			m.add(secret)
		}
	}
}

func (m Masks) add(value string) {
	if text := strings.TrimSpace(value); len(text) > 2 {
		m[text] = nil
		m[base64.StdEncoding.EncodeToString([]byte(value))] = nil
	}
}

// Hide replaces every secret value in a message.
func (m Masks) Hide(message string) string {
	if message == "" {
		return ""
	}
	// The longest value is first, because a value may be the beginning of another value.
	secrets := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if len(secret) > maxSpelled {
			message = strings.ReplaceAll(message, secret, "***")
			continue
		}
		if m[secret] == nil {
			m[secret] = spelling(secret)
		}
		message = m[secret].ReplaceAllString(message, "***")
	}
	return message
}

var plain = regexp.MustCompile(`^[A-Za-z0-9]$`)

// spelling returns a pattern for a secret in every encoding of the characters that are not
// letters or digits. Configuration files, URLs and error messages that quote them encode
// such characters differently, and several times.
func spelling(secret string) *regexp.Regexp {
	var pattern strings.Builder
	for _, character := range secret {
		if text := string(character); plain.MatchString(text) {
			pattern.WriteString(text)
		} else {
			pattern.WriteString("(?:" + strings.Join(spellings(character), "|") + ")")
		}
	}
	return regexp.MustCompile(pattern.String())
}

// spellings returns patterns for one character: literal, with backslashes, in a URL, in a
// URL with one character for each byte (see config.Database), and as a number.
func spellings(character rune) []string {
	text, bytewise, numbered := string(character), "", ""
	for _, b := range []byte(text) {
		bytewise += string(rune(b))
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		numbered += fmt.Sprintf(`\\+u%04x`, unit)
	}
	all := []string{
		"(?i:" + escaped("%", text) + ")", // before the literal %
		`\\*` + regexp.QuoteMeta(text),
		"(?i:" + escaped(`\\+x`, text) + ")",
		"(?i:" + numbered + ")",
		fmt.Sprintf(`(?i:\\+U%08x)`, character),
	}
	if bytewise != text {
		all = append(all, regexp.QuoteMeta(bytewise), "(?i:"+escaped("%", bytewise)+")")
	}
	switch character {
	case ' ':
		all = append(all, `\+`)
	case '\n', '\r', '\t':
		all = append(all, `\\+`+map[rune]string{'\n': "n", '\r': "r", '\t': "t"}[character])
	}
	return all
}

// escaped returns each byte as a hexadecimal number with the prefix.
func escaped(prefix, text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		fmt.Fprintf(&out, "%s%02x", prefix, b)
	}
	return out.String()
}
