package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// assignment is one option in a file.
type assignment struct {
	line    int
	section string // as written
	name    string
	value   string // as written, with the lines that continue it
}

// iniReader reads a file line by line.
type iniReader struct {
	each       func(assignment)
	last       assignment // the option that an indented line would continue
	section    string
	continues  bool   // an indented line would continue lastOption
	lastOption string // the name of the last option
}

// lineError is the first error of a text.
type lineError struct {
	number  int
	excerpt string // of the line, "" for none
	wrong   string
}

// Error returns one line.
func (e lineError) Error() string { return fmt.Sprintf("line %d: %s%s", e.number, e.excerpt, e.wrong) }

// parseINI accepts and refuses the same files as oslo.config (oslo_config/iniparser.py):
// lines end like Python's universal newlines, a line that begins with a space or a tab
// continues the option above, and trailing white space is removed before brackets, = and :
// are searched.
func parseINI(text string) ([]assignment, error) {
	var found []assignment
	err := scanINI(text, func(a assignment) { found = append(found, a) })
	if err != nil {
		return nil, err
	}
	return found, nil
}

// scanINI is parseINI for a text of any length: it calls each for one option after the
// other, also for those before an error.
func scanINI(text string, each func(assignment)) error {
	lines := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if strings.HasPrefix(lines, "\ufeff") {
		return errors.New("line 1: begins with a byte order mark; save the text as UTF-8 without one")
	}
	r := iniReader{each: each}
	number := 0
	for line := range strings.SplitSeq(lines, "\n") {
		number++
		if wrong := r.read(number, strings.TrimRightFunc(line, isPythonSpace)); wrong != "" {
			return lineError{number, excerpt(line, r.lastOption), wrong}
		}
	}
	r.end()
	return nil
}

// end reports the last option.
func (r *iniReader) end() {
	if r.last.name != "" {
		r.each(r.last)
	}
	r.last = assignment{}
}

// read reads one line without trailing white space, and returns its error.
func (r *iniReader) read(number int, line string) (wrong string) {
	switch {
	case line == "":
		r.continues = false
	case line[0] == ' ' || line[0] == '\t':
		if !r.continues {
			return "is indented, but there is no option above it to continue"
		}
		r.last.value += "\n" + strings.TrimLeft(line, " \t")
	case line[0] == '[':
		return r.begin(line)
	case line[0] == '#' || line[0] == ';':
		r.continues = false
	default:
		return r.assign(number, line)
	}
	return ""
}

func (r *iniReader) begin(line string) (wrong string) {
	r.continues, r.lastOption = false, ""
	if !strings.HasSuffix(line, "]") {
		return "begins like a section, but does not end with ]"
	}
	if r.section = line[1 : len(line)-1]; r.section == "" {
		return "is a section without a name"
	}
	return ""
}

func (r *iniReader) assign(number int, line string) (wrong string) {
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		return "is neither a [section] nor option = value"
	}
	name := strings.TrimFunc(line[:at], isPythonSpace)
	if name == "" {
		return "has no option name before the = or :"
	}
	if r.section == "" {
		return "stands before the first [section]"
	}
	r.continues, r.lastOption = true, name
	r.end()
	r.last = assignment{number, r.section, name, strings.TrimFunc(line[at+1:], isPythonSpace)}
	return ""
}

// unquoted removes one pair of quotes.
func unquoted(value string) string {
	if len(value) > 1 && value[0] == value[len(value)-1] && (value[0] == '"' || value[0] == '\'') {
		return value[1 : len(value)-1]
	}
	return value
}

var (
	firstWord  = regexp.MustCompile(`^\[?[A-Za-z][A-Za-z0-9_-]{0,39}\]?$`)
	secretName = regexp.MustCompile(`password|passwd|passphrase|secret|credential|(^|_)(pass|key|keys|token|tokens|connection|transport_url|backend_argument)$`)
)

// partitionKey is the name of a group of servers, in spite of its ending.
const partitionKey = "partition_key"

// LooksSecret tells whether the value of an option with this name must not be shown.
// merge-config has the same rule.
func LooksSecret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return name != partitionKey && secretName.MatchString(name)
}

// excerpt returns the first word of a line, by which a user finds the line. It returns "" if
// the word may be a part of a secret that was split into lines.
func excerpt(line, lastOption string) string {
	word, _, _ := strings.Cut(strings.TrimFunc(line, isPythonSpace), " ")
	if at := strings.IndexAny(word, "=:"); at >= 0 {
		word = word[:at]
	}
	if LooksSecret(lastOption) || !firstWord.MatchString(word) {
		return ""
	}
	return fmt.Sprintf("%q ", word)
}

// isPythonSpace is Python's str.isspace: str.strip removes these characters.
func isPythonSpace(r rune) bool {
	switch {
	case '\t' <= r && r <= '\r', 0x1c <= r && r <= ' ', r == 0x85, r == 0xa0, r == 0x1680,
		0x2000 <= r && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// groupName returns the name by which oslo.config compares sections: [DATABASE] equals
// [database], but [default] does not equal [DEFAULT].
func groupName(section string) string {
	if section == "DEFAULT" {
		return section
	}
	return strings.ToLower(section)
}
