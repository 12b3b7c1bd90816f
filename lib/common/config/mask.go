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

// secretKey matches the keys of Secrets whose values must not be shown; a host
// name or a user must be, or no message could say what is wrong.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|private|credential|connection|\.conf$|transport`)

// maxSpelled bounds what is searched in every spelling: a password or a URL. The
// longer is a file.
const maxSpelled = 512

// Masks are secret values, each with the pattern that finds it once that was
// needed.
type Masks map[string]*regexp.Regexp

// Add the values of a Secret that must not be shown. Blanks around them do not
// count: messages are trimmed.
func (m Masks) Add(data map[string][]byte) {
	for key, value := range data {
		if text := strings.TrimSpace(string(value)); len(text) > 2 && secretKey.MatchString(key) {
			m[text] = nil
			m[base64.StdEncoding.EncodeToString(value)] = nil
		}
	}
}

// Hide replaces every secret value in a message.
func (m Masks) Hide(message string) string {
	if message == "" {
		return ""
	}
	// The longest first: one may be the beginning of another.
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

// spelling matches a secret however the characters that are not letters or
// digits are written. It passes through configuration files, URLs and the
// messages of programs that quote them, and each has its own way, some on top
// of another's.
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

// spellings are patterns of one character: as it is, with backslashes before
// it, in a URL, in a URL in which each byte was taken for a character (see
// config.Database), and by its number.
func spellings(character rune) []string {
	text, bytewise, numbered := string(character), "", ""
	for _, b := range []byte(text) {
		bytewise += string(rune(b))
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		numbered += fmt.Sprintf(`\\+u%04x`, unit)
	}
	all := []string{
		"(?i:" + escaped("%", text) + ")", // before %, which may also stand for itself
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

// escaped writes each byte as its number in hexadecimal.
func escaped(prefix, text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		fmt.Fprintf(&out, "%s%02x", prefix, b)
	}
	return out.String()
}
