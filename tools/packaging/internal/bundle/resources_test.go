package bundle

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"asterism.dev/tools/internal/source"
)

func TestResourcesAgreeWithRights(t *testing.T) {
	creates := func(resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: resources, Verbs: []string{"get", "create"}}
	}
	for _, c := range []struct {
		about, message string
		rule           rbacv1.PolicyRule
		kinds          []string
	}{
		{"same", "", creates("deployments"), []string{"Deployment"}},
		{"right that no kind uses", "the operator may create statefulsets.apps", creates("deployments", "statefulsets"), []string{"Deployment"}},
		{"kind without a right", "Tiny creates StatefulSet of apps/v1", creates("deployments"), []string{"Deployment", "StatefulSet"}},
		{"right to read", "", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}, nil},
		{"subresource", "", creates("deployments/scale"), nil},
	} {
		operator := &source.Operator{
			Name: "tiny", Kinds: []source.Kind{{Name: "Tiny", Creates: map[string][]string{"apps/v1": c.kinds}}},
			NamespaceRules: []rbacv1.PolicyRule{c.rule, {APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}},
		}
		got, err := resources(operator)
		if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q", c.about, err, c.message)
		}
		if err == nil && len(got["Tiny"]) != len(c.kinds) {
			t.Errorf("%s: got %v", c.about, got)
		}
	}
}
