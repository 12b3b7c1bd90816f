package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSpelled bounds the values that are searched in every spelling, in bytes: a password or
// a URL. A longer value is a file, and is searched as it is.
const maxSpelled = 512

// Masked is a text of which parts are hidden. NewMasked returns a text without hidden parts.
type Masked struct {
	text   string
	hidden []bool // by byte; nil: nothing is hidden
}

// Printable replaces each character of a foreign text that a terminal would execute, or that
// is not visible, by a space. Lines and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
}

// NewMasked returns a text without hidden parts.
func NewMasked(text string) *Masked { return &Masked{text: text} }

// String returns the text with *** for each hidden part.
func (m *Masked) String() string {
	if m.hidden == nil {
		return m.text
	}
	var out strings.Builder
	for at := range len(m.text) {
		switch {
		case !m.hidden[at]:
			out.WriteByte(m.text[at])
		case at == 0 || !m.hidden[at-1]:
			out.WriteString("***")
		}
	}
	return out.String()
}

func (m *Masked) hide(from, to int) {
	if m.hidden == nil {
		m.hidden = make([]bool, len(m.text))
	}
	for at := from; at < to; at++ {
		m.hidden[at] = true
	}
}

// Hide hides a secret in every encoding of the characters that are not letters or digits.
// Configuration files, URLs and error messages that quote them encode such characters
// differently, and several times.
//
// It compares without a pattern for the secret, which would be a hundred times as large.
func (m *Masked) Hide(secret string) {
	if secret == "" || !strings.Contains(m.text, longestWord(secret)) {
		return
	}
	find := m.match
	if len(secret) > maxSpelled {
		find = m.literal
	}
	for at := 0; at < len(m.text); {
		from, to := find(at, secret)
		if from < 0 {
			return
		}
		m.hide(from, to)
		at = to
	}
}

// literal returns the next place of a secret after a byte of the text, -1 for none.
func (m *Masked) literal(at int, secret string) (from, to int) {
	found := strings.Index(m.text[at:], secret)
	if found < 0 {
		return -1, -1
	}
	return at + found, at + found + len(secret)
}

// match returns the next place of a spelling of a secret after a byte of the text, -1 for
// none.
func (m *Masked) match(at int, secret string) (from, to int) {
	for ; at < len(m.text); at++ {
		if end := m.spellingAt(at, secret); end >= 0 {
			return at, end
		}
	}
	return -1, -1
}

// spellingAt returns the end of the longest spelling of a secret that begins at a byte of the
// text, -1 for none.
func (m *Masked) spellingAt(at int, secret string) int {
	var both [2][8]int
	ends, next := append(both[0][:0], at), both[1][:0]
	for _, character := range secret {
		next = next[:0]
		for _, end := range ends {
			next = spellings(next, m.text, end, character)
		}
		if len(next) == 0 {
			return -1
		}
		ends, next = next, ends
	}
	return slices.Max(ends)
}

// letters are characters that no encoding changes.
var letters = regexp.MustCompile(`[A-Za-z0-9]+`)

// longestWord returns the longest sequence of letters and digits of a secret, which is a part of
// all its spellings. To search it is faster than to search the spellings.
func longestWord(secret string) string {
	longest := ""
	for _, part := range letters.FindAllString(secret, -1) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func isLetter(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
}

// spellings appends the ends of the spellings of a character that begin at a byte of a text:
// literal, with backslashes, in a URL, in a URL with one character for each byte (see
// config.Database), and as a number. Each end is appended once.
func spellings(ends []int, text string, at int, character rune) []int {
	add := func(end int) {
		if end >= 0 && !slices.Contains(ends, end) {
			ends = append(ends, end)
		}
	}
	if isLetter(character) {
		if at < len(text) && text[at] == byte(character) {
			add(at + 1)
		}
		return ends
	}
	var buffer [utf8.UTFMax]byte
	literal := buffer[:utf8.EncodeRune(buffer[:], character)]
	after := afterBackslashes(text, at)
	if character == '\\' && after > at {
		add(at + 1)
		add(after - 1) // without the backslash of a number
		add(after)
	} else if strings.HasPrefix(text[after:], string(literal)) {
		add(after + len(literal))
	}
	add(inURL(text, at, literal))
	if after > at {
		add(asNumber(text, after, literal, character))
	}
	if character >= utf8.RuneSelf {
		for _, end := range bytewise(text, at, literal) {
			add(end)
		}
	}
	if character == ' ' && at < len(text) && text[at] == '+' {
		add(at + 1)
	}
	return ends
}

// afterBackslashes returns the position after the backslashes at a position.
func afterBackslashes(text string, at int) int {
	for at < len(text) && text[at] == '\\' {
		at++
	}
	return at
}

// bytewise returns the ends of a character that is spelled as one character for each byte, and of
// the same in a URL; -1 if it is not at this position.
func bytewise(text string, at int, literal []byte) [2]int {
	spelled := make([]byte, 0, 2*utf8.UTFMax)
	for _, b := range literal {
		spelled = utf8.AppendRune(spelled, rune(b))
	}
	plain := -1
	if strings.HasPrefix(text[at:], string(spelled)) {
		plain = at + len(spelled)
	}
	return [2]int{plain, inURL(text, at, spelled)}
}

// inURL returns the end of %XX for each byte, -1 if it is not at this position.
func inURL(text string, at int, literal []byte) int {
	for _, b := range literal {
		if at >= len(text) || text[at] != '%' || !hexadecimal(text, at+1, 2, uint32(b)) {
			return -1
		}
		at += 3
	}
	return at
}

// asNumber returns the end of \xXX for each byte, of \uXXXX for each unit of UTF-16, of
// \UXXXXXXXX, or of \n; -1 if none is at this position, which is after the first backslashes.
func asNumber(text string, at int, literal []byte, character rune) int {
	if at >= len(text) {
		return -1
	}
	var units []uint32
	digits := 0
	switch name := text[at]; {
	case name == 'x' || name == 'X':
		digits = 2
		for _, b := range literal {
			units = append(units, uint32(b))
		}
	case name == 'u', name == 'U' && !hexadecimal(text, at+1, 8, uint32(character)): //nolint:gosec // a character is positive
		digits = 4
		for _, unit := range utf16.Encode([]rune{character}) {
			units = append(units, uint32(unit))
		}
	case name == 'U':
		return at + 9
	case character == '\n' && name == 'n', character == '\r' && name == 'r', character == '\t' && name == 't':
		return at + 1
	default:
		return -1
	}
	return numbers(text, at, digits, units)
}

// numbers returns the end of the units, each with the same letter before the digits and with
// backslashes between them; -1 if they are not at this position.
func numbers(text string, at, digits int, units []uint32) int {
	name := text[at] | 0x20
	for i, unit := range units {
		if i > 0 {
			begin := at
			if at = afterBackslashes(text, at); at == begin {
				return -1
			}
		}
		if at >= len(text) || text[at]|0x20 != name || !hexadecimal(text, at+1, digits, unit) {
			return -1
		}
		at += 1 + digits
	}
	return at
}

// hexadecimal tells whether a text has the digits of a number at a position.
func hexadecimal(text string, at, digits int, number uint32) bool {
	if at+digits > len(text) {
		return false
	}
	found, err := strconv.ParseUint(text[at:at+digits], 16, 32)
	return err == nil && uint32(found) == number //nolint:gosec // it has 32 bits
}
