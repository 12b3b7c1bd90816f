package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// registeredOption is an option that the tests register with oslo.config.
type registeredOption struct {
	Section    string      `json:"section"`
	Name       string      `json:"name"`
	Multi      bool        `json:"multi"`
	CLI        bool        `json:"cli"`   // registered as an option of the command line, too
	Known      bool        `json:"known"` // listed in options.txt
	Deprecated [][2]string `json:"deprecated"`
}

// testOptions are the options of a service in the tests: with former names in other sections,
// and multi-valued.
var testOptions = Options{
	{Section: "pci", Name: "device_spec", Multi: true, Deprecated: []Spelling{{"pci", "passthrough_whitelist"}, {"DEFAULT", "pci_passthrough_whitelist"}}},
	{Section: "MixedCase", Name: "renamed", Deprecated: []Spelling{{"OldCase", "renamed"}}},
}

// registeredOptions returns the known options and some plain options.
func registeredOptions() []registeredOption {
	var all []registeredOption
	for _, o := range knownTestOptions() {
		r := registeredOption{Section: o.Section, Name: o.Name, Multi: o.Multi, Known: true, Deprecated: [][2]string{}}
		r.CLI = o.Section == "DEFAULT" && strings.HasPrefix(o.Name, "log_")
		for _, d := range o.Deprecated {
			r.Deprecated = append(r.Deprecated, [2]string{d.Section, d.Name})
		}
		all = append(all, r)
	}
	for _, plain := range []Spelling{
		{"DEFAULT", "my_ip"},
		{"DEFAULT", "state_path"},
		{"DEFAULT", "debug"},
		{"DEFAULT", "transport_url"},
		{"MixedCase", "plain"},
		{"inventory", "password"},
		{"fabric", "metadata_proxy_shared_secret"},
		{"filter_scheduler", "host_subset_size"},
		{"default", "my_ip"},
	} {
		all = append(all, registeredOption{Section: plain.Section, Name: plain.Name, CLI: plain.Name == "debug", Deprecated: [][2]string{}})
	}
	return all
}

func knownTestOptions() Options {
	return append(append(append(OsloOptions(), DatabaseOptions("api_database")...), AuthOptions("inventory")...), testOptions...)
}

// generator writes parts with all unusual features that oslo.config accepts, and with some
// that it refuses, and counts the cases of each feature.
type generator struct {
	*rand.Rand
	registered []registeredOption
	focus      []registeredOption // options that all parts of one case set
	former     map[Spelling]bool  // options set by a deprecated name in this case
	used       map[string]bool    // features of this case
	Features   map[string]int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), registered: registeredOptions(), Features: map[string]int{}}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// Case returns the texts of three parts.
func (g *generator) Case() []string {
	g.used, g.former, g.focus = map[string]bool{}, map[Spelling]bool{}, nil
	for range 2 + g.IntN(5) {
		g.focus = append(g.focus, pick(g, g.registered))
	}
	parts := []string{g.part(), g.part(), g.part()}
	g.Features["cases"]++
	for feature := range g.used {
		g.Features[feature]++
	}
	return parts
}

func (g *generator) part() string {
	var lines []string
	seen := map[string]bool{}
	for range g.IntN(9) {
		section, name := g.name()
		if seen[groupName(section)] {
			g.used["a section twice"] = true
		}
		seen[groupName(section)] = true
		lines = append(lines, g.statement(section, name)...)
	}
	if g.chance(6) {
		lines = g.broken(lines)
	}
	text := strings.Join(lines, "\n") + pick(g, []string{"", "\n"})
	switch g.IntN(20) {
	case 0, 1, 2:
		g.used["CRLF"] = true
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case 3:
		g.used["CR"] = true
		text = strings.ReplaceAll(text, "\n", "\r")
	case 4:
		g.used["mixed line ends"] = true
		text = strings.Replace(text, "\n", "\r\n", 1+g.IntN(4))
	}
	if g.chance(1) {
		g.used["BOM"] = true
		text = "\ufeff" + text
	}
	return text
}

// statement returns a section with an option, and possibly comments and blank lines.
func (g *generator) statement(section, name string) []string {
	lines := []string{"[" + g.spelled(section) + "]"}
	more := []string{"more", "# more", "[more]", "a = b", "\"more\"", "é\u00a0x"}
	if secretNames[name] {
		more = append(more, "s3cr3t")
	}
	for range 1 + g.IntN(2) {
		lines = append(lines, g.noise()...)
		lines = append(lines, name+pick(g, []string{" = ", "=", ":", " : ", "  =\t", " =", "= "})+g.value(name))
		for g.chance(8) {
			g.used["continuation line"] = true
			lines = append(lines, pick(g, []string{" ", "\t", "    "})+pick(g, more))
		}
	}
	return append(lines, g.noise()...)
}

// secretNames are the generated options whose values must never be shown.
var secretNames = map[string]bool{
	"connection": true, "sql_connection": true, "password": true, "transport_url": true,
	"notification_transport_url": true, "metadata_proxy_shared_secret": true, "backend_argument": true,
}

func (g *generator) name() (section, name string) {
	if g.chance(12) {
		g.used["unknown option"] = true
		return pick(g, []string{"DEFAULT", "unknown", "UnKnown", "database"}),
			pick(g, []string{"alpha", "b-eta", "Gamma", "de lta", "épsilon", "zeta#", "[eta", "quoted\"", "auth-url"})
	}
	o := pick(g, g.focus)
	if o.Multi {
		g.used["multi-valued option"] = true
	}
	if o.CLI {
		g.used["option of the command line"] = true
	}
	current := Spelling{o.Section, o.Name}
	if len(o.Deprecated) > 0 && g.chance(45) {
		g.used["deprecated name"] = true
		g.former[current] = true
		d := pick(g, o.Deprecated)
		return d[0], d[1]
	}
	if g.former[current] {
		g.used["deprecated name, then the current one"] = true
	}
	return o.Section, o.Name
}

func (g *generator) spelled(section string) string {
	if g.chance(75) {
		return section
	}
	g.used["odd section spelling"] = true
	switch g.IntN(5) {
	case 0:
		return " " + section
	case 1:
		return section + "]"
	case 2:
		return strings.ToLower(section)
	case 3:
		return strings.ToUpper(section[:1]) + section[1:]
	}
	return strings.ToUpper(section)
}

func (g *generator) noise() []string {
	if !g.chance(25) {
		return nil
	}
	g.used["comment or blank line"] = true
	return []string{pick(g, []string{"", "   ", "\t", "# a comment", ";x = y", "#", "\u00a0"})}
}

func (g *generator) value(name string) string {
	if secretNames[name] && g.chance(60) {
		return pick(g, []string{"s3cr3t", `"s3cr3t"`, "mysql://u:s3cr3t@h/d", "s3cr3t  # s3cr3t"})
	}
	values := map[string][]string{
		"plain":      {"1", "true", "abc", "a,b", "/var/lib/x"},
		"quotes":     {`"quoted"`, `'quoted'`, `"`, `""`, `" blank "`, `"half`, `'"both"'`, `"a" and "b"`, `""twice""`},
		"$":          {"$my_ip", "${state_path}/x", "$undefined", `\$x`, "$$", "a$", `"\\$y"`, "$inventory.password", "$DEFAULT.my_ip", "$database"},
		"unicode":    {"é", "日本語", "a\u00a0", "\u2003b", "\x1cc", "d\u0085", "\u200be"},
		"comment":    {"# not a comment", "x  # 10-defaults.conf", "a ; b", "= b", ": b", "[c]"},
		"empty":      {"", " ", `"" `},
		"credential": {"http://u:s3cr3t@h/", "rabbit://u:s3cr3t@a,u:s3cr3t@b//"},
	}
	kind := pick(g, []string{"plain", "plain", "quotes", "$", "unicode", "comment", "empty", "credential"})
	g.used["value: "+kind] = true
	return pick(g, values[kind])
}

// broken inserts a line that oslo.config mostly refuses.
func (g *generator) broken(lines []string) []string {
	g.used["what oslo.config refuses"] = true
	wrong := pick(g, []string{"valueless", "= x", ": x", "[unclosed", "[]", "[", "[a] # b", "  indented", "\tx = y", "\u00a0 = 1", "\ufeffx = 1", "x"})
	at := g.IntN(len(lines) + 1)
	for at < len(lines) && strings.HasPrefix(strings.ReplaceAll(lines[at], "\t", " "), " ") {
		at++ // no other option may get the continuation lines, which may be secret
	}
	if g.chance(20) {
		return append([]string{"early = 1"}, lines...)
	}
	return append(append(append([]string{}, lines[:at]...), wrong), lines[at:]...)
}

// Literal is a value without line breaks.
func (g *generator) Literal() string {
	pieces := []string{"$", `\`, `"`, "'", " ", "\t", "{", "}", "%", "#", "=", ":", "@", "/", "a", "my_ip", "admin_token", "é", "\u00a0", "\x1c", "$$", `\$`, "${"}
	var out strings.Builder
	for range g.IntN(12) {
		out.WriteString(pick(g, pieces))
	}
	return out.String()
}

func (g *generator) String() string {
	var out strings.Builder
	for _, feature := range slices.Sorted(maps.Keys(g.Features)) {
		fmt.Fprintf(&out, "%6d %s\n", g.Features[feature], feature)
	}
	return out.String()
}
