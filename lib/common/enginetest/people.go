package enginetest

import (
	"fmt"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// people checks ../rbac/people.yaml beside a directory of CustomResourceDefinitions: its
// ClusterRoles must add every namespaced kind, and nothing else, to the roles admin, edit
// and view of Kubernetes.
func people(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	for role, wanted := range peopleNeed(definitions(t, []string{dir})) {
		granted := Rights{}
		for _, part := range readRoles(t, filepath.Join(dir, "..", "rbac", "people.yaml")) {
			if part.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] == "true" {
				granted.addRules(part.Rules)
			}
		}
		for _, right := range wanted.without(granted) {
			found = append(found, fmt.Sprintf("people.yaml does not add %s to %s", right, role))
		}
		for _, right := range granted.without(wanted) {
			found = append(found, fmt.Sprintf("people.yaml adds %s to %s, which does not need it", right, role))
		}
	}
	return found
}

// peopleNeed returns the rights to the kinds for each of the roles of Kubernetes.
func peopleNeed(kinds []*apiextensionsv1.CustomResourceDefinition) map[string]Rights {
	edit, view := Rights{}, Rights{}
	for _, kind := range kinds {
		if kind.Spec.Scope == apiextensionsv1.ClusterScoped {
			continue // an administrator of the cluster needs no role
		}
		group, resource := kind.Spec.Group, kind.Spec.Names.Plural
		edit.add(group, resource, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
		view.add(group, resource, "get", "list", "watch")
		if scale := kind.Spec.Versions[0].Subresources; scale != nil && scale.Scale != nil {
			edit.add(group, resource+"/scale", "get", "update", "patch")
			view.add(group, resource+"/scale", "get")
		}
	}
	return map[string]Rights{"admin": edit, "edit": edit, "view": view}
}
