// Package mask replaces secrets in texts and objects before a person, or another company,
// reads them.
package mask

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"asterism.dev/lib/common/config"
)

// hidden replaces a secret.
const hidden = "***"

// harmless are keys of Secrets whose values must stay readable: addresses, names of users,
// flags and certificates.
var harmless = []string{
	config.KeyUser, config.KeyUsername, config.KeyHostname, config.KeyPort, config.KeyDatabase, config.KeyTLS, config.KeyCA,
	config.KeyVHost, config.KeyQuorumQueues, config.KeyAuthURL, config.KeyPublicAuthURL, config.KeyProject,
	config.KeyUserDomain, config.KeyProjectDomain, config.KeyRegion,
	"host", "provider", "type", "tls.crt", "namespace",
}

// Masker replaces the values of the Secrets that it knows, and texts that have the form of a
// secret.
type Masker struct {
	known []known // the longest first, because a value may be the beginning of another
}

// known is a value of a Secret, in one encoding.
type known struct {
	value string
	probe string // a part of the value that every spelling of the value contains
	masks config.Masks
}

// New returns a Masker that knows no Secret.
func New() *Masker { return &Masker{} }

// shortest is the length from which the value of an unknown key counts as a secret. Shorter
// values may be ordinary words, and every such word in a log would be hidden.
const shortest = 12

// Learn adds the values of a Secret.
func (m *Masker) Learn(data map[string][]byte) {
	for key, value := range data {
		if slices.Contains(harmless, key) || len(value) < shortest && !secretKey.MatchString(key) {
			continue
		}
		masks := config.Masks{}
		masks.Add(map[string][]byte{"secret " + key: value}) // Masks asks whether the key names a secret
		for text := range masks {
			m.add(text)
		}
	}
}

func (m *Masker) add(value string) {
	at, found := slices.BinarySearchFunc(m.known, value, func(k known, value string) int {
		return cmp.Or(cmp.Compare(len(value), len(k.value)), cmp.Compare(k.value, value))
	})
	if !found {
		m.known = slices.Insert(m.known, at, known{value: value, probe: probe(value), masks: config.Masks{value: nil}})
	}
}

var letters = regexp.MustCompile(`[A-Za-z0-9]+`)

// probe returns the longest sequence of letters and digits, which no encoding of Masks
// changes. To look for it is much faster than to look for every spelling of the value.
func probe(value string) string {
	longest := ""
	for _, part := range letters.FindAllString(value, -1) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// secretKey matches the keys of Secrets whose values are secret in any length.
var secretKey = regexp.MustCompile(`(?i)pass|secret|token|private|credential|key|auth`)

var (
	// secretName matches names of options, keys and variables whose values are secret: those
	// of the effective view of a service, and those of Secrets.
	secretName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|secret|credentials?|api_?key|private_?key|access_?key|key_?data|tokens?|connection|transport_url|backend_argument|auth_?key|authorization)$`)
	// assignment is name = value, name: value or "name": "value" within a line.
	assignment = regexp.MustCompile(`(["']?)([A-Za-z_][\w.-]*)(["']?[ \t]*(?:=|:)[ \t]*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,;"'&]+(?:[ \t]+[A-Za-z0-9+/=_.-]{16,})?)`)
	// forms are texts that are secret wherever they are.
	forms = []*regexp.Regexp{
		regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
		regexp.MustCompile(`\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*`),         // tokens of Kubernetes
		regexp.MustCompile(`\bgAAAAA[\w-]{40,}=*`),                        // tokens of Keystone
		regexp.MustCompile(`(?i)\b(?:bearer|basic)[ \t]+[\w.~+/-]{8,}=*`), // HTTP headers
	}
	// userinfo is the account in a URL. A password may contain @ and /.
	userinfo = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)([^\s:@/"']*):([^\s"']*)@`)
)

// Text replaces the secrets in a text.
func (m *Masker) Text(text string) string {
	for _, k := range m.known {
		if strings.Contains(text, k.probe) {
			text = k.masks.Hide(text)
		}
	}
	for _, form := range forms {
		text = form.ReplaceAllString(text, hidden)
	}
	text = userinfo.ReplaceAllString(text, "${1}${2}:"+hidden+"@")
	return assignment.ReplaceAllStringFunc(text, hideValue)
}

func hideValue(found string) string {
	part := assignment.FindStringSubmatch(found)
	if !secretName.MatchString(part[2]) || part[4] == hidden {
		return found
	}
	if quote := part[4][:1]; quote == `"` || quote == "'" {
		return part[1] + part[2] + part[3] + quote + hidden + quote
	}
	return part[1] + part[2] + part[3] + hidden
}

// argument is an argument of a command whose next argument is secret.
var argument = regexp.MustCompile(`^--?[\w-]+$`)

// Object replaces the secrets in every text of an object: maps, lists and texts as JSON has
// them. It changes the maps and lists.
func (m *Masker) Object(value any) any {
	switch value := value.(type) {
	case string:
		return m.Text(value)
	case []any:
		for i, element := range value {
			if i > 0 && afterSecretArgument(value[i-1]) {
				value[i] = hidden
				continue
			}
			value[i] = m.Object(element)
		}
	case map[string]any:
		name, isName := value["name"].(string)
		for key, element := range value {
			_, isText := element.(string)
			if isText && (secretName.MatchString(key) || key == "value" && isName && secretName.MatchString(name)) {
				value[key] = hidden
				continue
			}
			value[key] = m.Object(element)
		}
	}
	return value
}

func afterSecretArgument(previous any) bool {
	text, ok := previous.(string)
	return ok && argument.MatchString(text) && secretName.MatchString(strings.TrimLeft(text, "-"))
}
