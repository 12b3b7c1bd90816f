package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Passwords with the special characters of shells, URLs, SQL, JSON, INI files and
// oslo.config. Each contains its own name.
const (
	canaryMariaDB  = `c4n4ry-mariadb'"\$%@:#?& é`
	canaryRabbitMQ = `'c4n4ry-rabbitmq $$ $my_ip "\%@:#?& é `
	canaryKeystone = `"c4n4ry-keystone $my_ip $$ '\%@:#?& é`
	canaryDatabase = `$c4n4ry-database'"\$$%@:#?& é` // of accounts that the tests create
	canaryBus      = `c4n4ry-bus'"\$my_ip%@:#?& é `
	canaryIdentity = `"c4n4ry-identity'"\$$ ${my_ip} %@:/#?& é `
	canaryShared   = `'c4n4ry-shared"\$$ $my_ip %@:/#?& `
)

// deployInfrastructure deploys examples/demo-persistent to another namespace, with
// canaries as passwords.
func deployInfrastructure(ctx context.Context, namespace string) {
	GinkgoHelper()
	deployExample(ctx, namespace, "demo-persistent")
}

// deployExample deploys a folder of the examples to another namespace, with canaries as
// passwords, and with variables for the script that creates the Secrets.
func deployExample(ctx context.Context, namespace, example string, variables ...string) {
	GinkgoHelper()
	deployExampleOf(ctx, release, namespace, example, variables...)
}

// deployExampleOf is deployExample with the image of any release of Debian.
func deployExampleOf(ctx context.Context, release, namespace, example string, variables ...string) {
	GinkgoHelper()
	makeNamespace(ctx, namespace)
	secrets := exec.CommandContext(ctx, repository("examples", "demo", "secrets"), namespace)
	secrets.Env = append(os.Environ(), "MARIADB_ADMIN_PASSWORD="+canaryMariaDB, "RABBITMQ_ADMIN_PASSWORD="+canaryRabbitMQ, "KEYSTONE_ADMIN_PASSWORD="+canaryKeystone)
	secrets.Env = append(secrets.Env, variables...)
	out, err := secrets.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)

	folder := GinkgoT().TempDir()
	demo, err := filepath.Rel(folder, repository("examples", example))
	Expect(err).NotTo(HaveOccurred())
	kustomization := fmt.Sprintf("namespace: %s\nresources: [%s]\n", namespace, demo)
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
	manifests := strings.ReplaceAll(kubectl(ctx, "kustomize", folder), imageOf(defaultRelease), imageOf(release)) // variants too
	// Another field manager is used, as the manifests contain the namespace without the tests' label.
	_, err = run(ctx, manifests, "kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=e2e-infrastructure", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// awaitInfrastructure waits until every server of a namespace is ready.
func awaitInfrastructure(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, name := range []string{"mariadb", "rabbitmq"} {
			var set appsv1.StatefulSet
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &set)).To(Succeed())
			g.Expect(set.Status.ReadyReplicas).To(Equal(*set.Spec.Replicas), name)
		}
		for _, name := range []string{"keystone", "placement", "openstackclient"} {
			var deployment appsv1.Deployment
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment)).To(Succeed())
			g.Expect(isRolledOut(&deployment)).To(BeTrue(), name)
		}
	}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(Succeed(), func() string { return explain(namespace) })
}

// rabbit calls the management API of the RabbitMQ of a namespace.
func rabbit(ctx context.Context, namespace, method, path string, body, into any) int {
	GinkgoHelper()
	admin := secret(ctx, namespace, "rabbitmq-default-user")
	content, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	base := "http://rabbitmq." + namespace + ".svc.cluster.local:15672/api/"
	if admin["ca.crt"] != "" {
		base = "https://rabbitmq." + namespace + ".svc.cluster.local:15671/api/"
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(content))
	Expect(err).NotTo(HaveOccurred())
	request.SetBasicAuth(admin["username"], admin["password"])
	response, err := httpClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	if into != nil && response.StatusCode < http.StatusMultipleChoices {
		Expect(json.NewDecoder(response.Body).Decode(into)).To(Succeed())
	}
	return response.StatusCode
}

// rabbitNames lists the names of a collection: vhosts or users.
func rabbitNames(ctx context.Context, namespace, collection string) []string {
	GinkgoHelper()
	var found []struct{ Name string }
	Expect(rabbit(ctx, namespace, http.MethodGet, collection, nil, &found)).To(Equal(http.StatusOK))
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name)
	}
	return names
}

// makeBusUser creates a vhost and a user with all rights on it.
func makeBusUser(ctx context.Context, namespace, vhost, user, password string) {
	GinkgoHelper()
	Expect(rabbit(ctx, namespace, http.MethodPut, "vhosts/"+url.PathEscape(vhost), struct{}{}, nil)).To(BeNumerically("<", 300))
	Expect(rabbit(ctx, namespace, http.MethodPut, "users/"+user, map[string]string{"password": password, "tags": ""}, nil)).To(BeNumerically("<", 300))
	Expect(rabbit(ctx, namespace, http.MethodPut, "permissions/"+url.PathEscape(vhost)+"/"+user, map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)).To(BeNumerically("<", 300))
}

// users lists the names of Keystone's users.
func (c cloud) users(ctx context.Context) []string {
	GinkgoHelper()
	identity := c.identity()
	var found struct{ Users []struct{ Name string } }
	_, err := identity.Get(ctx, identity.ServiceURL("users"), &found, nil)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, user := range found.Users {
		names = append(names, user.Name)
	}
	return names
}

// idOf returns the ID of a user, project or role of Keystone, or "".
func (c cloud) idOf(ctx context.Context, collection, name string) string {
	GinkgoHelper()
	identity := c.identity()
	var found map[string]any
	_, err := identity.Get(ctx, identity.ServiceURL(collection)+"?name="+url.QueryEscape(name), &found, nil)
	Expect(err).NotTo(HaveOccurred())
	entries, _ := found[collection].([]any)
	if len(entries) == 0 {
		return ""
	}
	entry, _ := entries[0].(map[string]any)
	id, _ := entry["id"].(string)
	return id
}

// makeUser creates a Keystone user of the service project with the roles that Nova needs and
// the password canaryIdentity.
func (c cloud) makeUser(ctx context.Context, name, description string) {
	GinkgoHelper()
	identity := c.identity()
	c.removeUser(ctx, name)
	var created struct{ User struct{ ID string } }
	user := map[string]any{"name": name, "password": canaryIdentity, "description": description, "domain_id": "default"}
	_, err := identity.Post(ctx, identity.ServiceURL("users"), map[string]any{"user": user}, &created, nil)
	Expect(err).NotTo(HaveOccurred())
	project := c.idOf(ctx, "projects", "service")
	for _, role := range []string{"admin", "service"} {
		_, err := identity.Put(ctx, identity.ServiceURL("projects", project, "users", created.User.ID, "roles", c.idOf(ctx, "roles", role)), nil, nil,
			&gophercloud.RequestOpts{OkCodes: []int{http.StatusNoContent}})
		Expect(err).NotTo(HaveOccurred())
	}
}

// makeCredential creates an application credential of a user of makeUser, and returns its ID.
func (c cloud) makeCredential(ctx context.Context, user string) string {
	GinkgoHelper()
	identity := signInAs(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: c.provider.IdentityEndpoint, Username: user, Password: canaryIdentity,
		DomainName: "Default", TenantName: "service",
	}).identity()
	var created struct {
		Credential struct{ ID string } `json:"application_credential"`
	}
	credential := map[string]any{"name": user, "secret": canaryIdentity}
	_, err := identity.Post(ctx, identity.ServiceURL("users", c.idOf(ctx, "users", user), "application_credentials"),
		map[string]any{"application_credential": credential}, &created, nil)
	Expect(err).NotTo(HaveOccurred())
	return created.Credential.ID
}

func (c cloud) removeUser(ctx context.Context, name string) {
	GinkgoHelper()
	if id := c.idOf(ctx, "users", name); id != "" {
		identity := c.identity()
		_, err := identity.Delete(ctx, identity.ServiceURL("users", id), nil)
		Expect(err).NotTo(HaveOccurred())
	}
}
