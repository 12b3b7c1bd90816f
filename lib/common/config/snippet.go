package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckSnippet checks an administrator's snippet before it is rolled out: it
// must be what oslo.config can parse, and it must not set an owned option under
// any of its names. The error is one line that says where and what to do, and
// shows no value, for a value may be secret.
//
// Section names are compared as oslo.config does (case does not matter, but for
// DEFAULT), option names exactly.
func CheckSnippet(text string, owned ...Option) error {
	if !utf8.ValidString(text) {
		return errors.New("the text is not UTF-8")
	}
	assignments, err := parseINI(text)
	if err != nil {
		return err
	}
	reserved := map[Spelling]Option{}
	for _, option := range owned {
		for _, name := range option.spellings() {
			if _, taken := reserved[name]; !taken {
				reserved[name] = option
			}
		}
	}
	var problems []string
	for _, a := range assignments {
		name := Spelling{groupName(a.section), a.name}
		option, refused := reserved[name]
		if !refused {
			continue
		}
		current := Spelling{option.Section, option.Name}
		reason := "is set by the operator"
		if name != (Spelling{groupName(option.Section), option.Name}) {
			reason = fmt.Sprintf("is a former name of %s, which is set by the operator", current)
		}
		problems = append(problems, fmt.Sprintf("line %d: %s %s; remove this line", a.line, Spelling{a.section, a.name}, reason))
	}
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - 5; more > 0 {
		problems = append(problems[:5], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(problems, "; "))
}

// spellings are all names of an option, the current one first, with sections
// as oslo.config compares them.
func (o Option) spellings() []Spelling {
	names := []Spelling{{groupName(o.Section), o.Name}}
	for _, d := range o.Deprecated {
		names = append(names, Spelling{groupName(d.Section), d.Name})
	}
	return names
}

// Options of keystoneauth that would take the place of those that Connections
// sets: another section, or another way to name the account and its scope.
var authRivals = []string{
	"auth_section", "user_id", "user_domain_id", "project_id", "project_domain_id",
	"domain_id", "domain_name", "system_scope", "trust_id", "default_domain_id", "default_domain_name",
}

// OwnedBy lists what an operator owns once it renders these sections: every
// option in them, with its former names, and what would take their place. The
// names are looked up in OsloOptions, in DatabaseOptions and AuthOptions of the
// rendered sections, and in known, a service's own table.
func OwnedBy(rendered Sections, known ...Option) []Option {
	table := append(OsloOptions(), known...)
	var owned []Option
	for _, section := range rendered {
		has := func(name string) bool {
			return slices.ContainsFunc(section.Settings, func(s Setting) bool { return s.Name == name })
		}
		if has("connection") {
			table = append(table, DatabaseOptions(section.Name)...)
		}
		names := section.names()
		if has("auth_type") {
			table = append(table, AuthOptions(section.Name)...)
			names = append(names, authRivals...)
		}
		for _, name := range names {
			owned = append(owned, table.find(section.Name, name))
		}
	}
	return owned
}

func (s Section) names() []string {
	var names []string
	for _, setting := range s.Settings {
		if !slices.Contains(names, setting.Name) {
			names = append(names, setting.Name)
		}
	}
	return names
}

// find returns what the table says about an option; several entries add up.
func (o Options) find(section, name string) Option {
	found := Option{Section: section, Name: name}
	for _, option := range o {
		if groupName(option.Section) == groupName(section) && option.Name == name {
			found.Multi = found.Multi || option.Multi
			found.Deprecated = append(found.Deprecated, option.Deprecated...)
		}
	}
	return found
}
