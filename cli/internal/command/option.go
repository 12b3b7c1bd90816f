package command

import (
	"regexp"
	"strings"
)

// option is an option of a service in the output of config view.
type option struct {
	Section    string `json:"section"`
	Name       string `json:"name"`
	Value      string `json:"value"`
	File       string `json:"file"`
	Note       string `json:"note,omitempty"`
	Overridden bool   `json:"overridden,omitempty"`
}

// String returns the option as a line of the view. Further lines of the value are indented.
func (o option) String() string {
	first, more, isLong := strings.Cut(o.Value, "\n")
	line := o.Name + " = " + first + "  # " + o.File
	if o.Note != "" {
		line += ", " + o.Note
	}
	if isLong {
		line += "\n      " + strings.ReplaceAll(more, "\n", "\n      ")
	}
	return line
}

// setting is a line of the effective view: name = value  # file, note. The file is after the
// last "  # ", because a value may contain these characters.
var setting = regexp.MustCompile(`^(# )?(\S+) = (.*)  # (\S+\.conf)(?:, (.*))?$`)

// optionsOf parses the effective view of the script merge-config.
func optionsOf(text string) []option {
	var options []option
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		found := setting.FindStringSubmatch(line)
		switch {
		case found != nil:
			options = append(options, option{
				Section: section, Name: found[2], Value: found[3], File: found[4],
				Note: strings.TrimSuffix(strings.TrimSuffix(found[5], "overridden"), ", "), Overridden: found[1] != "",
			})
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case len(options) > 0 && strings.HasPrefix(strings.TrimPrefix(line, "# "), "    "):
			// a further line of the value
			options[len(options)-1].Value += "\n" + strings.TrimSpace(strings.TrimPrefix(line, "# "))
		}
	}
	return options
}
