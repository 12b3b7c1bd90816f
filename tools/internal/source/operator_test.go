package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const account = "asterism-tiny-operator"

func objects(t *testing.T, documents ...string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func role(name, labels string) string {
	return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + name + ", labels: {" + labels + "}}, " +
		"rules: [{apiGroups: [\"\"], resources: [" + name + "], verbs: [get]}]}"
}

func TestClusterRolesHaveAPurpose(t *testing.T) {
	operator := &Operator{Name: "tiny", Objects: objects(
		t,
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+account+"}}",
		role(account, ""),
		role("asterism-tiny-namespaces", ""),
		role("asterism-tiny-cluster", ""),
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: a, kind: ClusterRole, name: asterism-tiny-cluster}}",
		role("asterism-tiny-viewer", `rbac.authorization.k8s.io/aggregate-to-view: "true"`),
	)}
	if err := operator.sort(); err != nil {
		t.Fatal(err)
	}
	if len(operator.UserRoles) != 1 || operator.UserRoles[0].Name != "asterism-tiny-viewer" {
		t.Errorf("roles of users: %v", operator.UserRoles)
	}
	if len(operator.NamespaceRules) != 1 || operator.NamespaceRules[0].Resources[0] != account {
		t.Errorf("rights in namespaces: %v", operator.NamespaceRules)
	}
	if len(operator.ClusterRules) != 1 || operator.ClusterRules[0].Resources[0] != "asterism-tiny-cluster" {
		t.Errorf("rights in the cluster: %v", operator.ClusterRules)
	}
}

func TestClusterRolesWithoutAPurposeAreRefused(t *testing.T) {
	for _, labels := range []string{"", `rbac.authorization.k8s.io/aggregate-to-view: "false"`} {
		operator := &Operator{Name: "tiny", Account: account, Objects: objects(t, role("asterism-tiny-forgotten", labels))}
		if err := operator.sort(); err == nil || !strings.Contains(err.Error(), "ClusterRole asterism-tiny-forgotten has neither") {
			t.Errorf("labels {%s}: got %v and roles of users %v", labels, err, operator.UserRoles)
		}
	}
}

func TestKindsAreThoseOfTheCRDs(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "tiny.yaml"), []byte("kind: Secret\n---\nkind: Tiny\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tinies}, spec: {group: a, scope: Cluster, names: {kind: Tiny, plural: tinies}, versions: []}}"
	for _, c := range []struct {
		about, message string
		kinds          []Kind
	}{
		{"complete", "", []Kind{{Name: "Tiny", Sample: "tiny.yaml"}}},
		{"no kind", "must list each", nil},
		{"a kind twice", "must list each", []Kind{{Name: "Tiny", Sample: "tiny.yaml"}, {Name: "Tiny", Sample: "tiny.yaml"}}},
		{"another kind", "must list each", []Kind{{Name: "Secret", Sample: "tiny.yaml"}}},
		{"a file without the kind", "no object of kind Big", []Kind{{Name: "Big", Sample: "tiny.yaml"}}},
	} {
		operator := &Operator{Name: "tiny", Kinds: c.kinds, Objects: objects(t, crd), Samples: map[string]*unstructured.Unstructured{}}
		if err := operator.sort(); err != nil {
			t.Fatal(err)
		}
		err := operator.readSamples(folder)
		if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q", c.about, err, c.message)
		}
	}
}

func TestVersionRange(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0": ">=0.1.0 <0.2.0-0", "1.9.3": ">=1.9.0 <1.10.0-0", "1": "", "one.two": "",
	} {
		got, err := (&Project{Version: version}).VersionRange()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("version %s: got %q, %v, want %q", version, got, err, want)
		}
	}
}
