package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Right is one verb on one resource or subresource.
type Right struct{ Verb, Group, Resource string }

func (r Right) String() string {
	if r.Group == "" {
		return r.Verb + " on " + r.Resource
	}
	return fmt.Sprintf("%s on %s.%s", r.Verb, r.Resource, r.Group)
}

// Rights is a set of rights.
type Rights map[Right]bool

func (r Rights) add(group, resource string, verbs ...string) {
	for _, verb := range verbs {
		r[Right{Verb: verb, Group: group, Resource: resource}] = true
	}
}

func (r Rights) addRules(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				r.add(group, resource, rule.Verbs...)
			}
		}
	}
}

func (r Rights) without(other Rights) []Right {
	var left []Right
	for right := range r {
		if !other[right] {
			left = append(left, right)
		}
	}
	slices.SortFunc(left, func(a, b Right) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	return left
}

// Ruled is a Subject of any kind.
type Ruled interface {
	Used(testing.TB) Rights
}

// Role checks that a generated Role grants exactly the rights that one operator uses.
// subjects are all its kinds.
func Role(t *testing.T, path string, subjects ...Ruled) {
	t.Helper()
	granted, used := readRole(t, path), Rights{}
	for _, subject := range subjects {
		for right := range subject.Used(t) {
			used[right] = true
		}
	}
	for _, right := range used.without(granted) {
		t.Errorf("%s does not grant %s, which is used", path, right)
	}
	for _, right := range granted.without(used) {
		t.Errorf("%s grants %s, which is not used", path, right)
	}
}

// Used returns the rights that the engine uses for this kind.
func (s Subject[T]) Used(t testing.TB) Rights {
	t.Helper()
	fixtures := s.fixtures(t)
	resources := s.resources(t)
	used := Rights{}
	own := resources(s.kind(t))
	used.add(own.Group, own.Resource, "get", "list", "watch")
	used.add(own.Group, own.Resource+"/status", "patch")
	if len(s.Service.Owns) > 0 {
		used.add(own.Group, own.Resource+"/finalizers", "update") // blockOwnerDeletion
	}
	used.add("", "events", "create", "patch")
	if len(s.Service.Teardown) > 0 {
		used.add(own.Group, own.Resource, "patch") // the finalizer
	}
	for _, gvk := range s.ownedKinds(t) {
		owned := resources(gvk)
		used.add(owned.Group, owned.Resource, "get", "list", "watch", "create", "patch", "delete")
		if hasPods[gvk.Kind] {
			used.add("", "pods", "list")
		}
		if gvk.Kind == "Route" { // OpenShift requires this for a host or a certificate (openshift/library-go: hostassignment)
			used.add(owned.Group, "routes/custom-host", "create", "update")
		}
	}
	for _, right := range s.Explained {
		used[right] = true
	}
	for _, f := range fixtures {
		for looked := range s.record(t, f, nil).looks {
			read := resources(looked.kind)
			used.add(read.Group, read.Resource, "get")
			if !looked.live {
				used.add(read.Group, read.Resource, "list", "watch")
			}
		}
	}
	return used
}

// hasPods are the kinds whose pods are read to explain why they are not complete.
var hasPods = map[string]bool{"StatefulSet": true, "Deployment": true, "DaemonSet": true, "Job": true}

// resources returns a mapping of kinds to resources, including kinds that are not served.
func (s Subject[T]) resources(t testing.TB) func(schema.GroupVersionKind) schema.GroupResource {
	t.Helper()
	m := mapper(s.scheme(t), s.definitions(t), nil)
	return func(gvk schema.GroupVersionKind) schema.GroupResource {
		mapping, err := m.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			t.Fatalf("there is no CRD of %s in %v: add its folder to CRDs", gvk.Kind, s.crds(t))
		}
		return mapping.Resource.GroupResource()
	}
}

// readRole returns the rights of every Role and ClusterRole in a file.
func readRole(t testing.TB, path string) Rights {
	t.Helper()
	granted := Rights{}
	for _, role := range readRoles(t, path) {
		granted.addRules(role.Rules)
	}
	return granted
}

// readRoles reads every Role and ClusterRole in a file.
func readRoles(t testing.TB, path string) []rbacv1.ClusterRole {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: type \"make generate\"", err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var all []rbacv1.ClusterRole
	for {
		role := rbacv1.ClusterRole{}
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, role)
	}
}
