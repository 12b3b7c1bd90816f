package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// right is access that an RBAC rule grants to an operator. All reading verbs are one
// access, and so are all writing verbs: the API server decides which of get, list and
// watch a watch needs, and Kubernetes deletes most children after their owner.
type right struct {
	operator        string // the name of its account
	access          string // read, write
	group, resource string // a resource may have a subresource
	name            string // "" for all names
}

func (r right) String() string {
	resource := strings.TrimSuffix(r.resource+"."+r.group, ".")
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", r.operator, r.access, resource, r.name))
}

func accessOf(verb string) string {
	switch verb {
	case "get", "list", "watch":
		return "read"
	}
	return "write"
}

// delegatedRights are rights that an operator does not use itself, but grants to the driver's
// account: Kubernetes lets an account grant only rights that it has.
var delegatedRights = []string{
	"asterism-shared-volume-operator: read nodes", "asterism-shared-volume-operator: write nodes",
}

// expectRightsUsed compares the operators' granted rights with their requests in the audit
// log, from the start of the cluster.
func expectRightsUsed(ctx context.Context) {
	GinkgoHelper()
	granted := grantedRights(ctx)
	Expect(len(granted)).To(BeNumerically(">", 80))
	used, refused := usedRights(auditSince(0))
	Expect(refused).To(BeEmpty(), "requests of operators that were forbidden")
	if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles)+len(suite.LabelFilter) > 0 {
		AddReportEntry("unused rights", "not compared: a part of the suite does not use every right")
		return
	}
	var unused []string
	for r := range granted {
		if !used[r] && !slices.Contains(delegatedRights, r.String()) {
			unused = append(unused, r.String())
		}
	}
	slices.Sort(unused)
	Expect(unused).To(BeEmpty(), "rights that no operator has used")
}

// grantedRights returns the rights of the roles that are bound to the demo's operators, for
// the API groups that this cluster serves.
func grantedRights(ctx context.Context) map[right]bool {
	GinkgoHelper()
	var everywhere rbacv1.ClusterRoleBindingList
	Expect(k8s.List(ctx, &everywhere)).To(Succeed())
	var inNamespaces rbacv1.RoleBindingList
	Expect(k8s.List(ctx, &inNamespaces)).To(Succeed())
	granted := map[right]bool{}
	for _, binding := range everywhere.Items {
		grant(ctx, granted, "", binding.RoleRef, binding.Subjects)
	}
	for _, binding := range inNamespaces.Items {
		grant(ctx, granted, binding.Namespace, binding.RoleRef, binding.Subjects)
	}
	groups, err := typed.Discovery().ServerGroups()
	Expect(err).NotTo(HaveOccurred())
	served := map[string]bool{"": true}
	for _, group := range groups.Groups {
		served[group.Name] = true
	}
	maps.DeleteFunc(granted, func(r right, _ bool) bool {
		// The API server checks the right to update finalizers, and does not log that.
		return !served[r.group] || strings.HasSuffix(r.resource, "/finalizers")
	})
	return granted
}

func grant(ctx context.Context, granted map[right]bool, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	GinkgoHelper()
	for _, subject := range subjects {
		if !slices.Contains(demoOperators, subject.Namespace) {
			continue
		}
		for _, rule := range rulesOf(ctx, namespace, ref) {
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, name := range append(rule.ResourceNames, make([]string, max(0, 1-len(rule.ResourceNames)))...) {
							granted[right{subject.Name, accessOf(verb), group, resource, name}] = true
						}
					}
				}
			}
		}
	}
}

func rulesOf(ctx context.Context, namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	GinkgoHelper()
	if ref.Kind == "Role" {
		var role rbacv1.Role
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &role)).To(Succeed())
		return role.Rules
	}
	var role rbacv1.ClusterRole
	Expect(k8s.Get(ctx, client.ObjectKey{Name: ref.Name}, &role)).To(Succeed())
	return role.Rules
}

// changingRights are namespaces in which an operator's rights change, so that a request may be
// forbidden.
type changingRights struct {
	inDeletion map[string]bool // RoleBindings are deleted as well
	handedOver map[string]time.Time
}

func (c changingRights) note(r request) {
	switch {
	case r.ObjectRef.Resource == "namespaces" && (r.Verb == "delete" && r.Response.Code < 300 || r.creates()):
		c.inDeletion[r.ObjectRef.Name] = r.Verb == "delete"
	case r.ObjectRef.Resource == "rolebindings" && r.creates():
		c.handedOver[r.ObjectRef.Namespace] = r.Received
	}
}

func (c changingRights) excuse(r request) bool {
	// The API server looks up an owner's kind, and knows a new kind only after seconds.
	isNewKind := strings.Contains(r.Response.Message, "cannot find RESTMapping")
	// An operator may see its RoleBinding before the API server's authorizer does.
	isNewBinding := r.Received.Sub(c.handedOver[r.ObjectRef.Namespace]) < 10*time.Second
	return c.inDeletion[r.ObjectRef.Namespace] || isNewKind || isNewBinding
}

// usedRights returns the rights that the requests of operators needed, each with and
// without the object's name, and the requests that were forbidden.
func usedRights(requests []request) (used map[right]bool, refused []string) {
	used = map[right]bool{}
	changing := changingRights{map[string]bool{}, map[string]time.Time{}}
	for _, r := range requests {
		changing.note(r)
		_, account, _ := strings.Cut(strings.TrimPrefix(r.User.Username, "system:serviceaccount:"), ":")
		isOperator := strings.HasPrefix(account, "asterism-") && strings.HasSuffix(account, "-operator")
		if !isOperator || r.UserAgent == tester { // an attack of the tests
			continue
		}
		if r.Response.Code == 403 {
			if !changing.excuse(r) {
				refused = append(refused, r.String())
			}
			continue
		}
		resource := strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
		for _, name := range []string{"", r.ObjectRef.Name} {
			used[right{account, accessOf(r.Verb), r.ObjectRef.APIGroup, resource, name}] = true
		}
	}
	return used, refused
}
