// Package apigroup knows the API groups of Asterism.
package apigroup

import "strings"

// suffix is the common end of the API groups.
const suffix = "asterism.dev"

// IsOwn returns true for an API group of Asterism.
func IsOwn(group string) bool { return group == suffix || strings.HasSuffix(group, "."+suffix) }
