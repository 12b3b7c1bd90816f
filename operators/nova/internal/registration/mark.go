// Package registration holds what registering accounts at a database, a
// message bus and an identity service has in common: the ownership mark, the
// kinds of failure, and connections that give up within seconds.
package registration

import (
	"fmt"
	"regexp"
	"strings"
)

const markPrefix = "asterism "

// Mark is written on whatever is made outside the Kubernetes cluster, by the
// very statement that makes it. A thing belongs to the custom resource whose mark
// it carries, also if that was deleted and created again under its name. A thing
// with another mark, or with none, belongs to somebody else.
type Mark string

// NewMark returns the mark of the custom resource namespace/name in the
// cluster clusterID (the UID of the namespace kube-system).
func NewMark(clusterID, namespace, name string) Mark {
	return Mark(markPrefix + clusterID + "/" + namespace + "/" + name)
}

// IsMark tells whether text is the mark of any custom resource.
func IsMark(text string) bool { return strings.HasPrefix(text, markPrefix) }

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// CheckName refuses a name that could mean something else in SQL, in a URL or
// in a bus address. It allows lower-case letters, digits, "_" and "-", and at
// most longest bytes. kind says in the message what was to be named.
func CheckName(kind, name string, longest int) error {
	if len(name) > longest {
		return fmt.Errorf("%s name %q has %d characters, more than %d", kind, name, len(name), longest)
	}
	if !namePattern.MatchString(name) {
		return fmt.Errorf(`%s name %q must consist of lower-case letters, digits, "_" and "-", and begin with a letter or digit`, kind, name)
	}
	return nil
}
