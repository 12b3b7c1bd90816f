package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Editor returns a client with the rights of Kubernetes' role edit in one namespace, and
// with those to all kinds of the API groups, which people.yaml aggregates to edit.
func Editor(t testing.TB, namespace string, groups []string, addToScheme ...func(*runtime.Scheme) error) client.Client {
	t.Helper()
	admin := Client(t)
	person := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "editor-of-" + namespace}}
	own := metav1.ObjectMeta{Namespace: namespace, Name: "editor-of-groups"}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: own, Rules: []rbacv1.PolicyRule{{APIGroups: groups, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}}}},
		&rbacv1.RoleBinding{ObjectMeta: own, Subjects: person, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "editor"}, Subjects: person,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		},
	} {
		if err := admin.Create(context.Background(), object); err != nil {
			t.Fatalf("giving rights to an editor: %v", err)
		}
	}
	config := Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: person[0].Name}
	editor, err := client.New(config, client.Options{Scheme: Scheme(t, addToScheme...)})
	if err != nil {
		t.Fatalf("connecting as an editor: %v; %s", err, startServer)
	}
	return editor
}

// SecretBomb is a snippet of almost 1 MiB, the most that a Secret has, with 1,900 secret
// values. An operator that keeps much for each value runs out of memory.
func SecretBomb() []byte {
	var text strings.Builder
	text.WriteString("[a]\n")
	for i := range 1900 {
		fmt.Fprintf(&text, "key=%06d%s\n", i, strings.Repeat("!", 500))
	}
	return []byte(text.String())
}
