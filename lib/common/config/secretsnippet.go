package config

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxSecretSnippet bounds the snippets of one Secret, in bytes, so that a Secret can hold
// the connections and the snippets of all Secrets.
const maxSecretSnippet = 64 << 10

// SecretSnippet joins the snippets of a Secret in the order of its keys, and checks each
// like CheckSnippet. The error names the key, and has nothing of a line that is no option: the Secret
// may have been made for another purpose.
func SecretSnippet(data map[string][]byte, owned ...Option) (string, error) {
	size := 0
	for _, value := range data {
		size += len(value) + 1
	}
	if size > maxSecretSnippet {
		return "", fmt.Errorf("has snippets of %d bytes together; at most %d are allowed", size, maxSecretSnippet)
	}
	var joined strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text := string(data[key])
		err := CheckSnippet(text, owned...)
		if wrong := (lineError{}); errors.As(err, &wrong) {
			wrong.excerpt = ""
			err = wrong
		}
		if err != nil {
			return "", fmt.Errorf("key %s: %w", key, err)
		}
		joined.WriteString(text)
		joined.WriteString("\n")
	}
	return joined.String(), nil
}

// SecretSnippet stores the snippets of the Secret at a position of the spec's list as a
// part that is read after CustomPart. merge-config masks all values of a part with this
// ending.
func (c *Connections) SecretSnippet(position int, secret, text string) {
	c.files[SecretPart(position, secret)] = []byte(text)
}

// SecretPart is the name of the part with the snippets of a Secret, see Connections.SecretSnippet.
func SecretPart(position int, secret string) string {
	return fmt.Sprintf("%d-%s.secret.conf", 91+position, secret)
}

// userInfo matches the password in a URL.
var userInfo = regexp.MustCompile(`://[^/]*:(.*)@`)

// SnippetSecrets returns the secret values of a snippet: the values of options with a secret
// name, and the passwords in URLs. It returns none for a text that is not a snippet.
func SnippetSecrets(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !strings.Contains(text, "[") || scanINI(text, func(assignment) {}) != nil {
			return
		}
		more := true
		_ = scanINI(text, func(a assignment) { // the first scan has found no error
			if more && LooksSecret(a.name) {
				more = yield(unquoted(a.value))
			}
			if found := userInfo.FindStringSubmatch(a.value); more && found != nil {
				more = yield(found[1])
			}
		})
	}
}
