package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Sections is a file for oslo.config: sections and options in the order in which they were
// first set. The zero value is an empty file.
type Sections []Section

// Section is one [Name] with its options.
type Section struct {
	Name     string
	Settings []Setting
}

// Setting is one option. Value is the literal value that the service reads.
type Setting struct {
	Name  string
	Value string
}

// Set sets an option to one value, and removes its other values.
func (s *Sections) Set(section, name, value string) {
	at := s.section(section)
	kept := at.Settings[:0]
	placed := false
	for _, setting := range at.Settings {
		if setting.Name != name {
			kept = append(kept, setting)
		} else if !placed {
			kept, placed = append(kept, Setting{name, value}), true
		}
	}
	if !placed {
		kept = append(kept, Setting{name, value})
	}
	at.Settings = kept
}

// SetUnlessEmpty is Set for an option that has a default: "" leaves the option out.
func (s *Sections) SetUnlessEmpty(section, name, value string) {
	if value != "" {
		s.Set(section, name, value)
	}
}

// SetAll sets each option of other sections.
func (s *Sections) SetAll(other Sections) {
	for _, section := range other {
		for _, setting := range section.Settings {
			s.Set(section.Name, setting.Name, setting.Value)
		}
	}
}

// Get returns the last value of an option, "" if it is not set.
func (s Sections) Get(section, name string) (value string) {
	for _, candidate := range s {
		for _, setting := range candidate.Settings {
			if candidate.Name == section && setting.Name == name {
				value = setting.Value
			}
		}
	}
	return value
}

// Add adds a value to a multi-valued option.
func (s *Sections) Add(section, name, value string) {
	at := s.section(section)
	at.Settings = append(at.Settings, Setting{name, value})
}

// Remove removes a section with all its options.
func (s *Sections) Remove(section string) {
	*s = slices.DeleteFunc(*s, func(candidate Section) bool { return candidate.Name == section })
}

func (s *Sections) section(name string) *Section {
	for i := range *s {
		if (*s)[i].Name == name {
			return &(*s)[i]
		}
	}
	*s = append(*s, Section{Name: name})
	return &(*s)[len(*s)-1]
}

var (
	sectionName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	optionName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// Render returns the text of the file. It refuses invalid names, and values with a line
// break.
func (s Sections) Render() (string, error) {
	var out strings.Builder
	for i, section := range s {
		if !sectionName.MatchString(section.Name) {
			return "", fmt.Errorf("section name %q: use letters, digits, _ . and -", section.Name)
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "[%s]\n", section.Name)
		for _, setting := range section.Settings {
			if !optionName.MatchString(setting.Name) {
				return "", fmt.Errorf("[%s] option name %q: use letters, digits, _ . and -", section.Name, setting.Name)
			}
			if strings.ContainsAny(setting.Value, "\r\n") {
				return "", fmt.Errorf("[%s] %s: the value contains a line break", section.Name, setting.Name)
			}
			fmt.Fprintf(&out, "%s = %s\n", setting.Name, literal(setting.Value))
		}
	}
	return out.String(), nil
}

var plainValue = regexp.MustCompile(`^[A-Za-z0-9_.,:;/@%?=&+*~#\[\]-]*$`)

// literal quotes a value only if oslo.config would change it without quotes.
func literal(value string) string {
	if plainValue.MatchString(value) {
		return value
	}
	return Quote(value)
}

// Quote quotes a value so that oslo.config reads exactly this value: oslo.config strips one
// pair of quotes, and \$ is the only escape of a $ that also works after a backslash ($$
// does not). Line breaks cannot be quoted.
func Quote(value string) string {
	return `"` + strings.ReplaceAll(value, "$", `\$`) + `"`
}
