package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxSecretSnippet bounds the snippets of one Secret, in bytes, so that a Secret can hold
// the connections and the snippets of all Secrets.
const maxSecretSnippet = 64 << 10

// SecretSnippet joins the snippets of a Secret in the order of its keys, and checks each
// like CheckSnippet. The error names the key and has no values.
func SecretSnippet(data map[string][]byte, owned ...Option) (string, error) {
	var joined strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text := string(data[key])
		if err := CheckSnippet(text, owned...); err != nil {
			return "", fmt.Errorf("key %s: %w", key, err)
		}
		joined.WriteString(text)
		joined.WriteString("\n")
	}
	if joined.Len() > maxSecretSnippet {
		return "", fmt.Errorf("has snippets of %d bytes together; at most %d are allowed", joined.Len(), maxSecretSnippet)
	}
	return joined.String(), nil
}

// SecretSnippet stores the snippets of the Secret at a position of the spec's list as a
// part that is read after CustomPart. merge-config masks all values of a part with this
// ending.
func (c *Connections) SecretSnippet(position int, secret, text string) {
	c.files[fmt.Sprintf("%d-%s.secret.conf", 91+position, secret)] = []byte(text)
}

// userInfo matches the password in a URL.
var userInfo = regexp.MustCompile(`://[^/]*:(.*)@`)

// snippetSecrets returns the secret values of a snippet: the values of options with a secret
// name, and the passwords in URLs. It returns nothing for a text that is not a snippet.
func snippetSecrets(text string) []string {
	if !strings.Contains(text, "[") {
		return nil
	}
	assignments, err := parseINI(text)
	if err != nil {
		return nil
	}
	var secrets []string
	for _, a := range assignments {
		if looksSecret(a.name) {
			secrets = append(secrets, unquoted(a.value))
		}
		if found := userInfo.FindStringSubmatch(a.value); found != nil {
			secrets = append(secrets, found[1])
		}
	}
	return secrets
}
