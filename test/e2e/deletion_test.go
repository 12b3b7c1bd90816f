package e2e

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletionSpecs delete the two ControlPlanes of the cloud with faults.
func deletionSpecs() {
	It("is deleted in the foreground, without the databases and the other ControlPlane", func(ctx SpecContext) {
		remove(ctx, cloudNamespace, "second", metav1.DeletePropagationForeground)
		expectRemoved(ctx, cloudNamespace, "second")
		Expect(databasesOf(ctx, cloudNamespace, "second")).To(ConsistOf("second_api", "second_cell0", "second_cell1"))
		Expect(queryServer(ctx, cloudNamespace, edgeMariaDB, "SHOW DATABASES LIKE 'second%'")).To(ConsistOf("second_cell2"))
		Expect(queryServer(ctx, cloudNamespace, edgeMariaDB, `SELECT User FROM mysql.user WHERE User LIKE 'second\_%'`)).To(BeEmpty())
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
		Expect(signIn(ctx, cloudNamespace).computeEndpoints(ctx)).To(HaveLen(2))
	})

	It("is deleted in the background, and recreated with its server", func(ctx SpecContext) {
		// Without an account, nova-compute would retry without a pause, and log each attempt.
		kubectl(ctx, "delete", "deployment", "nova-compute", "--namespace="+cloudNamespace)
		remove(ctx, cloudNamespace, "main", metav1.DeletePropagationBackground)
		expectRemoved(ctx, cloudNamespace, "main")
		Expect(databasesOf(ctx, cloudNamespace, "main")).To(ConsistOf("main_api", "main_cell0", "main_cell1"))
		Expect(signIn(ctx, cloudNamespace).computeEndpoints(ctx)).To(BeEmpty())

		applyMain(ctx)
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
		Expect(signIn(ctx, cloudNamespace).activeServers(ctx)).To(ContainElement(HaveField("Name", "kept")))
		Expect(cellsOf(ctx, cloudNamespace, "main")).To(ConsistOf("cell0", "cell1"))
	})

	It("is deleted without its database server, and lists the accounts that remain", func(ctx SpecContext) {
		account := accountOf(ctx, "main_api", "main")
		kubectl(ctx, "delete", "service", "faulty-mariadb", "--namespace="+cloudNamespace)
		remove(ctx, cloudNamespace, "main", metav1.DeletePropagationForeground)
		Expect(events(ctx, cloudNamespace, "Nova", "main")).To(ContainElement(And(HavePrefix("LeftBehind"), ContainSubstring(account))))
		expectBusAndIdentityRemoved(ctx, cloudNamespace, "main")
	})
}

func remove(ctx context.Context, namespace, name string, how metav1.DeletionPropagation) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, object("ControlPlane", namespace, name), &client.DeleteOptions{PropagationPolicy: &how})).To(Succeed())
	awaitGone(ctx, "ControlPlane", namespace, name)
}

// expectRemoved expects that nothing of a ControlPlane is left in the cluster and at the
// servers, except its databases.
func expectRemoved(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(func() []string {
		var left []string
		for object := range uidsOf(ctx, namespace) {
			kind, rest, _ := strings.Cut(object, "/")
			given := kind == "Secret" && strings.HasSuffix(rest, "-admin") || strings.HasSuffix(rest, "-default-user")
			if strings.HasPrefix(rest, name+"-") && !given {
				left = append(left, object)
			}
		}
		return left
	}).WithContext(ctx).Should(BeEmpty())
	Expect(query(ctx, namespace, "SELECT User FROM mysql.user WHERE User LIKE ?", name+`\_%`)).To(BeEmpty())
	expectBusAndIdentityRemoved(ctx, namespace, name)
}

func expectBusAndIdentityRemoved(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	for _, collection := range []string{"vhosts", "users"} {
		Expect(rabbitNames(ctx, namespace, collection)).NotTo(ContainElement(HavePrefix(name+"_")), collection)
	}
	Expect(signIn(ctx, namespace).users(ctx)).NotTo(ContainElement(HavePrefix(name + "_")))
	Expect(rabbit(ctx, namespace, http.MethodGet, "overview", nil, nil)).To(Equal(http.StatusOK))
}

func databasesOf(ctx context.Context, namespace, prefix string) []string {
	GinkgoHelper()
	return query(ctx, namespace, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE ?", prefix+`\_%`)
}
