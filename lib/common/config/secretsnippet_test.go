package config

import (
	"strings"
	"testing"
)

func TestSecretSnippetsAreJoinedByKey(t *testing.T) {
	text, err := SecretSnippet(map[string][]byte{"b": []byte("[b]\nb = 2"), "a": []byte("[a]\na = 1")})
	if want := "[a]\na = 1\n[b]\nb = 2\n"; err != nil || text != want {
		t.Errorf("got %q and error %v, want %q", text, err, want)
	}
}

func TestSecretSnippetsAreCheckedByKey(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"an option of the operator":  {map[string][]byte{"a": []byte("[a]\na = 1"), "b": []byte("[DEFAULT]\nhost = c4n4ry")}, "key b: line 2: [DEFAULT] host is set by the operator; remove this line"},
		"a key that needs a section": {map[string][]byte{"a": []byte("[a]\na = 1"), "b": []byte("password = c4n4ry")}, `key b: line 1: stands before the first [section]`},
		"a key that is no snippet":   {map[string][]byte{"cache": []byte("hunter2")}, "key cache: line 1: is neither a [section] nor option = value"},
		"a value in two lines":       {map[string][]byte{"a": []byte("[ldap]\nsuffix = abc\nhunter2")}, "key a: line 3: is neither a [section] nor option = value"},
		"a Secret that is too large": {map[string][]byte{"a": []byte(strings.Repeat("#", 40000)), "b": []byte(strings.Repeat("#", 40000))}, "has snippets of 80002 bytes together; at most 65536 are allowed"},
	} {
		if _, err := SecretSnippet(test.data, ownedInTests(t)...); err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, test.want)
		}
	}
}
