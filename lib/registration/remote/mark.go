// Package remote is shared by the clients that register accounts at a database, a
// message bus and an identity service: ownership marks, error types, and connections with
// timeouts of seconds.
package remote

import (
	"fmt"
	"regexp"
	"strings"
)

const markPrefix = "asterism "

// Mark identifies the custom resource that owns an object outside the Kubernetes
// cluster, for example a database. The statement that creates the object also writes the
// mark. A custom resource that is created again under the same name has the same mark. An
// object with another mark, or without a mark, has another owner.
type Mark string

// NewMark returns the mark of the custom resource namespace/name in the
// cluster clusterID (the UID of the namespace kube-system).
func NewMark(clusterID, namespace, name string) Mark {
	return Mark(markPrefix + clusterID + "/" + namespace + "/" + name)
}

// IsMark returns whether text is the mark of any custom resource.
func IsMark(text string) bool { return strings.HasPrefix(text, markPrefix) }

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// CheckName refuses a name with characters that have a meaning in SQL, in a URL or in the
// address of a message bus. It allows lower-case letters, digits, "_" and "-", and at most
// longest bytes. The message begins with kind.
func CheckName(kind, name string, longest int) error {
	if len(name) > longest {
		return fmt.Errorf("%s name %q has %d characters, more than %d", kind, name, len(name), longest)
	}
	if !namePattern.MatchString(name) {
		return fmt.Errorf(`%s name %q must consist of lower-case letters, digits, "_" and "-", and begin with a letter or digit`, kind, name)
	}
	return nil
}
