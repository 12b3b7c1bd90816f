// Package mask replaces secrets in texts and objects before a person, or another company,
// reads them.
package mask

import (
	"cmp"
	"fmt"
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
	config.KeyVHost, config.KeyQuorumQueues, config.KeyTransientQuorumQueues, config.KeyAuthURL, config.KeyPublicAuthURL, config.KeyProject,
	config.KeyUserDomain, config.KeyProjectDomain, config.KeyRegion,
	"host", "provider", "type", "tls.crt", "namespace",
}

// Masker replaces the values of the Secrets that it knows, and texts that have the form of a
// secret.
type Masker struct {
	known   map[string]bool
	tooMany string // the Secret after which the Masker learns no more; "": none
}

// maxKnown bounds the values that a Masker knows. Every editor of a namespace may write a
// Secret with a hundred thousand values, and each text is searched for each value.
const maxKnown = 20000

// New returns a Masker that knows no Secret.
func New() *Masker { return &Masker{known: map[string]bool{}} }

// shortest is the length from which the value of an unknown key counts as a secret. Shorter
// values may be ordinary words, and every such word in a log would be hidden.
const shortest = 12

// shortestLine is the length from which a line of a value counts as a secret.
const shortestLine = 16

// certificate is public, and the authorities that a system trusts have thousands of lines.
var certificate = regexp.MustCompile(`-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----`)

// Learn adds the values of a Secret, and the lines of each, because a log is read line by
// line. If the Masker would know more than 20,000 values, it
// hides every text from now on.
func (m *Masker) Learn(secret string, data map[string][]byte) {
	for key, value := range data {
		if slices.Contains(harmless, key) || len(value) < shortest && !secretKey.MatchString(key) {
			continue
		}
		m.learn(secret, value)
		for found := range config.SnippetSecrets(string(value)) {
			m.learn(secret, []byte(found))
		}
	}
}

func (m *Masker) learn(secret string, value []byte) {
	for text := range config.Spelt(value) {
		m.know(secret, text)
	}
	text := string(value)
	if !strings.Contains(strings.TrimSpace(text), "\n") || config.CheckSnippet(text) == nil {
		return // Learn finds the secrets of a snippet; its other lines are in many files
	}
	for line := range strings.Lines(certificate.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		if len(line) >= shortestLine && !strings.HasPrefix(line, "-----") { // forms needs the first line of a key
			m.know(secret, line)
		}
	}
}

func (m *Masker) know(secret, text string) {
	if len(m.known) >= maxKnown {
		m.tooMany = cmp.Or(m.tooMany, secret)
		return
	}
	m.known[strings.Clone(text)] = true
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
	// keyEdge is the first or the last line of a private key.
	keyEdge = regexp.MustCompile(`-----(?:BEGIN|END) [A-Z ]*PRIVATE KEY-----`)
	// userinfo is the account in a URL. A password may contain @ and /.
	userinfo = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)([^\s:@/"']*):([^\s"']*)@`)
)

// Text replaces the secrets in a text, and what a terminal would execute.
func (m *Masker) Text(text string) string {
	if m.tooMany != "" && text != "" {
		return fmt.Sprintf("hidden: with Secret %s there are more than %d secret values: remove the options that no service needs, or leave out the namespace", m.tooMany, maxKnown)
	}
	masked := config.NewMasked(text)
	for value := range m.known {
		masked.Hide(value)
	}
	text = masked.String()
	text, isSnippet := snippet(text)
	for _, form := range forms {
		text = form.ReplaceAllString(text, hidden)
	}
	text = userinfo.ReplaceAllString(text, "${1}${2}:"+hidden+"@")
	return assignment.ReplaceAllStringFunc(config.Printable(text), func(found string) string { return hideValue(found, isSnippet) })
}

// OpenKey returns the beginning of the private key that a text does not end, "" for none. A
// reader of lines puts it before the next line, so that Text hides the line.
func OpenKey(text string) string {
	edges := keyEdge.FindAllString(text, -1)
	if len(edges) == 0 || strings.HasPrefix(edges[len(edges)-1], "-----END") {
		return ""
	}
	return edges[len(edges)-1]
}

// snippet hides the lines of the values of secret options, except short ones, which may be
// parts of other words. It tells whether the text is a snippet with such options.
func snippet(text string) (masked string, isSnippet bool) {
	all := config.NewMasked(text)
	for value := range config.SnippetSecrets(text) {
		isSnippet = true
		for line := range strings.SplitSeq(value, "\n") {
			if len(line) > len(hidden) && !strings.HasPrefix(line, hidden) { // the effective view is masked, with the file of each value
				all.Hide(line)
			}
		}
	}
	return all.String(), isSnippet
}

func hideValue(found string, inSnippet bool) string {
	part := assignment.FindStringSubmatch(found)
	isSecret := secretName.MatchString(part[2]) || (inSnippet || isOption(part[2], part[3])) && config.LooksSecret(part[2])
	if !isSecret || part[4] == hidden {
		return found
	}
	if quote := part[4][:1]; quote == `"` || quote == "'" {
		return part[1] + part[2] + part[3] + quote + hidden + quote
	}
	return part[1] + part[2] + part[3] + hidden
}

// isOption tells whether a name is that of a service's option, and not that of a field, or a
// word before a colon.
func isOption(name, separator string) bool {
	return name == strings.ToLower(name) && (strings.Contains(separator, "=") || strings.Contains(name, "_"))
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
