package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "asterism.dev/test/cloud"
)

const tlsControlPlane = `
apiVersion: asterism.dev/v1alpha1
kind: ControlPlane
metadata: {name: demo}
spec:
  containerImage: asterism.dev/demo/openstack:bookworm
  database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}
  messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq-default-user}}
  identity: {adminSecretRef: {name: keystone-admin}}
  nova: {api: {workers: 1}, metadata: {workers: 1}, cells: [{name: cell1}]}
`

// tlsServer is a server of examples/demo-tls.
type tlsServer struct {
	name      string
	admin     string // Secret of its administrator
	address   string // in messages about the registration of accounts
	condition string // prefix of a Nova's condition and reasons about the server
	reload    func(ctx context.Context)
}

func (s tlsServer) hosts() []string {
	inNamespace := s.name + "." + tlsNamespace + ".svc"
	return []string{s.name, inNamespace, inNamespace + ".cluster.local"}
}

var tlsServers = []tlsServer{
	{
		name: "mariadb", admin: "mariadb-admin", condition: "Database", address: "mariadb.e2e-tls.svc.cluster.local:3306",
		reload: func(ctx context.Context) { execute(ctx, tlsNamespace, "FLUSH SSL") },
	},
	{
		name: "rabbitmq", admin: "rabbitmq-default-user", condition: "MessageBus", address: "rabbitmq.e2e-tls.svc.cluster.local:15671",
		reload: func(ctx context.Context) {
			_, err := execIn(ctx, tlsNamespace, "rabbitmq-0", "/usr/lib/rabbitmq/bin/rabbitmqctl", "eval", "ssl:clear_pem_cache().")
			Expect(err).NotTo(HaveOccurred())
		},
	},
	{
		name: "keystone", admin: "keystone-admin", condition: "Identity", address: "keystone.e2e-tls.svc.cluster.local:5000",
		reload: func(context.Context) {}, // Keystone reloads by itself
	},
}

// MariaDB, RabbitMQ and Keystone refuse connections without TLS.
var _ = Describe("TLS", Ordered, func() {
	var first, second authority
	inAYear := time.Now().AddDate(1, 0, 0)

	BeforeAll(func(ctx SpecContext) {
		first, second = newAuthority("first"), newAuthority("second")
		makeNamespace(ctx, tlsNamespace)
		trustInDemo(ctx, first.pem())
		for _, server := range tlsServers {
			setSecret(ctx, tlsNamespace, server.name+"-tls", first.sign(inAYear, server.hosts()...))
		}
		file := GinkgoT().TempDir() + "/ca.crt"
		Expect(os.WriteFile(file, []byte(first.pem()), 0o600)).To(Succeed())
		deployExample(ctx, tlsNamespace, "demo-tls", "AUTHORITY="+file)
		handOver(ctx, tlsNamespace, sharedOperators)
		awaitInfrastructure(ctx, tlsNamespace)
	})

	It("is refused with a wrong certificate, and the message names the server and the reason", func(ctx SpecContext) {
		for _, server := range tlsServers {
			trustOf(ctx, server, second.pem())
		}
		apply(ctx, tlsNamespace, tlsControlPlane)
		nova := object("Nova", tlsNamespace, "demo")
		for _, server := range tlsServers {
			refused := func(reason string) {
				GinkgoHelper()
				awaitFalse(ctx, nova, server.condition+"Ready", server.condition+"Unreachable", server.address, reason)
			}
			refused("signed by unknown authority")

			present(ctx, server, first.sign(time.Now().Add(-time.Minute), server.hosts()...))
			trustOf(ctx, server, first.pem())
			refused("certificate has expired")

			present(ctx, server, first.sign(inAYear, "elsewhere.example.org"))
			refused("is valid for elsewhere.example.org, not " + server.hosts()[2])

			present(ctx, server, first.sign(inAYear, server.hosts()...))
		}
	}, SpecTimeout(10*time.Minute))

	It("secures all connections of a Nova with an ACTIVE server", func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", tlsNamespace, "demo")
		deployCompute(ctx, tlsNamespace, "demo-cell1")
		bootServer(ctx, tlsNamespace, "over-tls")
		accounts := query(ctx, tlsNamespace, `SELECT CONCAT(User, ' ', ssl_type) FROM mysql.user WHERE User LIKE 'demo\_%'`)
		Expect(accounts).To(HaveLen(3))
		Expect(accounts).To(HaveEach(HaveSuffix(" ANY")))
	})

	It("replaces the authority without a lost request", func(ctx SpecContext) {
		requests := shared.StartLoad(ctx, shared.Requests{
			URLs:  []string{shared.ServiceURL(ctx, "http://demo-api."+tlsNamespace+".svc:8774/v2.1/flavors")},
			Token: signIn(ctx, tlsNamespace).provider.Token(), PerSecond: 8,
		})
		awaitTrust(ctx, first.pem()+second.pem())
		for _, server := range tlsServers {
			present(ctx, server, second.sign(inAYear, server.hosts()...))
		}
		awaitTrust(ctx, second.pem())
		answered, lost := requests.Stop()
		AddReportEntry("requests", fmt.Sprintf("%d answered, %d lost", answered, len(lost)))
		Expect(lost).To(BeEmpty(), func() string {
			return kubectl(ctx, "get", "events", "--namespace="+tlsNamespace, "--sort-by=.lastTimestamp", "--field-selector=involvedObject.kind=Pod")
		})
		Expect(answered).To(BeNumerically(">", 100))
		bootServer(ctx, tlsNamespace, "over-new-tls")
	}, SpecTimeout(10*time.Minute))
})

// present replaces a server's certificate. The kubelet updates a Secret's files in a pod
// within minutes, and at once after a change of the pod.
func present(ctx context.Context, server tlsServer, certificate map[string]string) {
	GinkgoHelper()
	setSecret(ctx, tlsNamespace, server.name+"-tls", certificate)
	awaitFile(ctx, server.name, "/certificate/tls.crt", certificate["tls.crt"])
	server.reload(ctx)
}

// awaitFile waits until a file of a Secret or ConfigMap has its newest content in the pod
// of a server. It changes an annotation of the pod, so that the kubelet updates the file.
func awaitFile(ctx context.Context, server, path, content string) {
	GinkgoHelper()
	pods := podsOf(ctx, tlsNamespace, map[string]string{"app.kubernetes.io/name": server})
	Expect(pods).To(HaveLen(1))
	Eventually(func(g Gomega) {
		touch := fmt.Sprintf(`{"metadata": {"annotations": {"e2e.asterism.dev/touched": %q}}}`, time.Now())
		g.Expect(k8s.Patch(ctx, &pods[0], client.RawPatch(types.MergePatchType, []byte(touch)))).To(Succeed())
		found, err := execIn(ctx, tlsNamespace, pods[0].Name, "cat", path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(content))
	}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
}

// trustOf sets the authority in the Secret of a server's administrator.
func trustOf(ctx context.Context, server tlsServer, authority string) {
	GinkgoHelper()
	values := secret(ctx, tlsNamespace, server.admin)
	values["ca.crt"] = authority
	setSecret(ctx, tlsNamespace, server.admin, values)
}

// trustInDemo sets the authority that Keystone, Placement and the client trust.
func trustInDemo(ctx context.Context, authority string) {
	GinkgoHelper()
	apply(ctx, tlsNamespace, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: authority}\ndata: {ca.crt: %q}\n", authority))
}

// awaitTrust sets the authorities that all clients trust, and waits until all pods of Nova
// are replaced.
func awaitTrust(ctx context.Context, authorities string) {
	GinkgoHelper()
	began := time.Now().Truncate(time.Second)
	trustInDemo(ctx, authorities)
	for _, user := range []string{"keystone", "placement", "openstackclient"} {
		awaitFile(ctx, user, "/authority/ca.crt", authorities)
	}
	for _, server := range tlsServers {
		trustOf(ctx, server, authorities)
	}
	for _, service := range []string{"superconductor", "cell1-conductor", "scheduler", "metadata", "api"} {
		Eventually(func(g Gomega) {
			trusted := secret(ctx, tlsNamespace, "demo-"+service+"-connections")
			for _, file := range []string{"database-ca.crt", "messagebus-ca.crt", "identity-ca.crt"} {
				g.Expect(trusted[file]).To(Equal(authorities), "%s of %s", file, service)
			}
			pods := podsOf(ctx, tlsNamespace, map[string]string{"app.kubernetes.io/instance": "demo-" + service})
			pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }) // of Jobs
			g.Expect(pods).NotTo(BeEmpty())
			for _, pod := range pods {
				g.Expect(pod.CreationTimestamp.Time).NotTo(BeTemporally("<", began), pod.Name)
			}
		}).WithContext(ctx).Should(Succeed(), func() string { return explain(tlsNamespace) })
	}
	awaitSettled(ctx, tlsNamespace)
}
