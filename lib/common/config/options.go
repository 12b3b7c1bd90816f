package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Option is an option that a service registers. A table needs only options that have former
// names, which are in the order in which oslo.config tries them, or several values.
type Option struct {
	Section    string
	Name       string // as in files, with underscores
	Multi      bool
	Deprecated []Spelling
}

// Spelling is a name of an option in a file.
type Spelling struct {
	Section string
	Name    string
}

func (s Spelling) String() string { return "[" + s.Section + "] " + s.Name }

// Options is a table of options. Its text form, which merge-config also reads, has one
// option per line: the name, with * if the option is multi-valued, and the former names.
//
//	database/connection DEFAULT/sql_connection DATABASE/sql_connection sql/connection
//	oslo_messaging_notifications/driver* DEFAULT/notification_driver
type Options []Option

// ParseOptions parses the text form; blank lines and lines with # are comments.
func ParseOptions(text string) (Options, error) {
	var options Options
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name, multi := strings.CutSuffix(words[0], "*")
		spellings := make([]Spelling, 0, len(words))
		for _, word := range append([]string{name}, words[1:]...) {
			section, option, found := strings.Cut(word, "/")
			if !found || section == "" || option == "" {
				return nil, fmt.Errorf("line %d: %q is not section/option", i+1, word)
			}
			spellings = append(spellings, Spelling{section, option})
		}
		options = append(options, Option{spellings[0].Section, spellings[0].Name, multi, spellings[1:]})
	}
	return options, nil
}

// String returns the text form.
func (o Options) String() string {
	var out strings.Builder
	for _, option := range o {
		out.WriteString(option.Section + "/" + option.Name)
		if option.Multi {
			out.WriteByte('*')
		}
		for _, d := range option.Deprecated {
			out.WriteString(" " + d.Section + "/" + d.Name)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

var (
	//go:embed options/oslo.txt
	osloOptions string
	//go:embed options/database.txt
	databaseOptions string
	//go:embed options/auth.txt
	authOptions string
)

// OsloOptions returns the renamed and the multi-valued options that the oslo libraries
// (except the AMQP 1.0 driver) and keystonemiddleware register under fixed section names,
// with DatabaseOptions of database and AuthOptions of keystone_authtoken and service_user.
func OsloOptions() Options {
	return slices.Concat(embedded(osloOptions), DatabaseOptions("database"), AuthOptions("keystone_authtoken", "service_user"))
}

// DatabaseOptions returns oslo.db's options in further sections, for example for a second
// database of a service.
func DatabaseOptions(sections ...string) Options {
	return inSections(databaseOptions, sections)
}

// AuthOptions returns keystoneauth's options in sections with credentials.
func AuthOptions(sections ...string) Options {
	return inSections(authOptions, sections)
}

func inSections(table string, sections []string) Options {
	var options Options
	for _, section := range sections {
		options = append(options, embedded(strings.ReplaceAll(table, "SECTION/", section+"/"))...)
	}
	return options
}

// embedded parses a table of this package; a test finds errors in the tables.
func embedded(text string) Options {
	options, _ := ParseOptions(text)
	return options
}
