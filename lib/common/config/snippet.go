package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckSnippet checks an administrator's snippet before it is rolled out: oslo.config must
// be able to parse it, and it must not set an owned option under any of its names. The
// error is one text line with the line number and the action. It has no values, because a
// value may be secret.
//
// Section names are compared like in oslo.config (without case, except DEFAULT), option
// names exactly.
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

// spellings returns all names of an option, the current name first, with groupName of the
// sections.
func (o Option) spellings() []Spelling {
	names := []Spelling{{groupName(o.Section), o.Name}}
	for _, d := range o.Deprecated {
		names = append(names, Spelling{groupName(d.Section), d.Name})
	}
	return names
}

// authAlternatives are options of keystoneauth that would override the options of Connections:
// another section, or other names of the account and its scope.
var authAlternatives = []string{
	"auth_section", "user_id", "user_domain_id", "project_id", "project_domain_id",
	"domain_id", "domain_name", "system_scope", "trust_id", "default_domain_id", "default_domain_name",
	"application_credential_name",
}

// OwnedBy lists the options that an operator owns if it renders these sections: every
// option in them, with its former names, and options that would override them. It leaves out
// heartbeat_in_pthread, whose best value depends on how the release runs its threads. The names
// are searched in OsloOptions, in DatabaseOptions and AuthOptions of the rendered sections, and
// in known, the service's table.
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
		names := slices.DeleteFunc(section.names(), func(name string) bool { return section.Name == rabbit && name == heartbeat })
		if has("auth_type") {
			table = append(table, AuthOptions(section.Name)...)
			names = append(names, authAlternatives...)
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

// find returns an option with the data of all its entries in the table.
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
