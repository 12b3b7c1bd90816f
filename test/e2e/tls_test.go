package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/certificatetest"

	shared "asterism.dev/test/cloud"
)

// tlsServer is a server of examples/demo-tls.
type tlsServer struct {
	name      string
	services  []string // names of Services that lead to it
	admin     string   // Secret of its administrator
	address   string   // in messages about the registration of accounts
	condition string   // prefix of a Nova's condition and reasons about the server
	reload    func(ctx context.Context)
}

func (s tlsServer) hosts() []string {
	var hosts []string
	for _, service := range s.services {
		inNamespace := service + "." + cloudNamespace + ".svc"
		hosts = append(hosts, service, inNamespace, inNamespace+".cluster.local")
	}
	return hosts
}

var tlsServers = []tlsServer{
	{
		name: "mariadb", services: []string{"mariadb", "faulty-mariadb", "mariadb-cell1"},
		admin: "mariadb-admin", condition: "Database", address: "mariadb.e2e-cloud.svc.cluster.local:3306",
		reload: func(ctx context.Context) { execute(ctx, cloudNamespace, "FLUSH SSL") },
	},
	{
		name: "rabbitmq", services: []string{"rabbitmq", "rabbitmq-cell1"},
		admin: "rabbitmq-default-user", condition: "MessageBus", address: "rabbitmq.e2e-cloud.svc.cluster.local:15671",
		reload: func(ctx context.Context) {
			_, err := execIn(ctx, cloudNamespace, "rabbitmq-0", "/usr/lib/rabbitmq/bin/rabbitmqctl", "eval", "ssl:clear_pem_cache().")
			Expect(err).NotTo(HaveOccurred())
		},
	},
	{
		name: "keystone", services: []string{"keystone"},
		admin: "keystone-admin", condition: "Identity", address: "keystone.e2e-cloud.svc.cluster.local:5000",
		reload: func(context.Context) {}, // Keystone reloads by itself
	},
}

// authorities sign the certificates of the servers, one after the other.
type authorities struct{ first, second certificatetest.Authority }

// deployTLS deploys MariaDB, RabbitMQ and Keystone that refuse connections without TLS.
func deployTLS(ctx context.Context, of authorities) {
	GinkgoHelper()
	makeNamespace(ctx, cloudNamespace)
	trustInDemo(ctx, string(of.first.PEM))
	for _, server := range tlsServers {
		setSecret(ctx, cloudNamespace, server.name+"-tls", certificateOf(of.first, inAYear(), server.hosts()...))
	}
	setAPICertificate(ctx, of.first, of.first.PEM)
	file := GinkgoT().TempDir() + "/ca.crt"
	Expect(os.WriteFile(file, of.first.PEM, 0o600)).To(Succeed())
	deployExample(ctx, cloudNamespace, "demo-tls", "AUTHORITY="+file)
}

// certificateOf returns the content of a server's TLS Secret for these host names.
func certificateOf(signer certificatetest.Authority, notAfter time.Time, hosts ...string) map[string]string {
	GinkgoHelper()
	certificate, key := signer.Sign(GinkgoTB(), notAfter, hosts...)
	return map[string]string{"tls.crt": string(certificate), "tls.key": string(key)}
}

// The API of main serves TLS, with the certificate in a Secret.
const (
	apiCertificate = "api-certificate"
	apiHost        = "main-api." + cloudNamespace + ".svc.cluster.local"
	apiURL         = "https://" + apiHost + ":8774/v2.1"
)

// setAPICertificate gives the API of main a new certificate. The operator trusts the authorities.
func setAPICertificate(ctx context.Context, signer certificatetest.Authority, trusted ...[]byte) {
	GinkgoHelper()
	content := certificateOf(signer, inAYear(), apiHost)
	content["ca.crt"] = string(slices.Concat(trusted...))
	setSecret(ctx, cloudNamespace, apiCertificate, content)
}

// trusting returns the configuration of a client of main's API that knows only these authorities.
func trusting(authorities ...[]byte) *tls.Config {
	GinkgoHelper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: apiHost, MinVersion: tls.VersionTLS12}
	Expect(config.RootCAs.AppendCertsFromPEM(slices.Concat(authorities...))).To(BeTrue())
	return config
}

// awaitAPICertificate waits until every pod of main's API has a certificate of this authority.
func awaitAPICertificate(ctx context.Context, signer certificatetest.Authority) {
	GinkgoHelper()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: trusting(signer.PEM)}
	Eventually(func(g Gomega) {
		pods := podsOf(ctx, cloudNamespace, map[string]string{"app.kubernetes.io/instance": "main-api"})
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }) // of Jobs
		g.Expect(pods).NotTo(BeEmpty())
		for _, pod := range pods {
			connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, "8774"))
			g.Expect(err).NotTo(HaveOccurred(), pod.Name)
			g.Expect(connection.Close()).To(Succeed())
		}
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), func() string { return explain(cloudNamespace) })
}

func inAYear() time.Time { return time.Now().AddDate(1, 0, 0) }

// refusedControlPlane has no image, so that it goes no further than its accounts.
const refusedControlPlane = `
apiVersion: asterism.dev/v1alpha1
kind: ControlPlane
metadata: {name: refused}
spec:
  containerImage: registry.invalid/nova:none
  database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}
  messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq-default-user}}
  identity: {adminSecretRef: {name: keystone-admin}}
  nova: {cells: [{name: cell1}]}
`

func refusalSpec(of *authorities) {
	It("is refused with a wrong certificate, and the message names the server and the reason", func(ctx SpecContext) {
		for _, server := range tlsServers {
			trustOf(ctx, server.admin, string(of.second.PEM))
		}
		apply(ctx, cloudNamespace, refusedControlPlane)
		nova := object("Nova", cloudNamespace, "refused")
		for _, server := range tlsServers {
			refused := func(reason string) {
				GinkgoHelper()
				awaitFalse(ctx, nova, server.condition+"Ready", server.condition+"Unreachable", server.address, reason)
			}
			refused("signed by unknown authority")

			present(ctx, server, certificateOf(of.first, time.Now().Add(-time.Minute), server.hosts()...))
			trustOf(ctx, server.admin, string(of.first.PEM))
			refused("certificate has expired")

			present(ctx, server, certificateOf(of.first, inAYear(), "elsewhere.example.org"))
			refused("is valid for elsewhere.example.org, not " + server.hosts()[2])

			present(ctx, server, certificateOf(of.first, inAYear(), server.hosts()...))
			awaitWithin(ctx, patience, "Nova", cloudNamespace, "refused", func(g Gomega, o *unstructured.Unstructured) {
				g.Expect(conditionOf(o, server.condition+"Ready").status).To(Equal("True"))
			})
		}
		remove(ctx, cloudNamespace, "refused", metav1.DeletePropagationForeground)
	}, SpecTimeout(15*time.Minute))
}

func tlsSpecs(of *authorities) {
	It("shows in the metrics when the authority of a server expires", func(ctx SpecContext) {
		apply(ctx, sharedOperators, metricsAccounts)
		Eventually(func() string { return servedMetrics(ctx, sharedOperators) }).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(
			`asterism_certificate_expiry_timestamp_seconds{kind="Nova",name="main",namespace="` + cloudNamespace + `",source="secret/main-mariadb-admin"} `))
	})

	It("serves the API by TLS, to clients and to the operator, and shows when its certificate expires", func(ctx SpecContext) {
		Expect(signIn(ctx, cloudNamespace).computeEndpoints(ctx)).To(HaveEach(HaveField("URL", apiURL)))
		verifying := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: trusting(of.first.PEM)}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, apiURL+"/flavors", nil)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("X-Auth-Token", signIn(ctx, cloudNamespace).provider.Token())
		response, err := verifying.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusOK))

		setAPIAuthority := func(authority []byte) {
			content := secret(ctx, cloudNamespace, apiCertificate)
			content["ca.crt"] = string(authority)
			setSecret(ctx, cloudNamespace, apiCertificate, content)
		}
		nova := object("Nova", cloudNamespace, "main")
		setAPIAuthority(of.second.PEM)
		awaitFalse(ctx, nova, "Available", "", apiHost, "signed by unknown authority")
		setAPIAuthority(of.first.PEM)
		awaitWithin(ctx, patience, "Nova", cloudNamespace, "main", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Available").status).To(Equal("True"))
		})
		Eventually(func() string { return servedMetrics(ctx, sharedOperators) }).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(
			`asterism_certificate_expiry_timestamp_seconds{kind="NovaAPI",name="main-api",namespace="` + cloudNamespace + `",source="secret/` + apiCertificate + `"} `))
	})

	It("secures all connections of a Nova with an ACTIVE server", func(ctx SpecContext) {
		Expect(signIn(ctx, cloudNamespace).activeServers(ctx)).To(ContainElement(HaveField("Name", "kept")))
		accounts := query(ctx, cloudNamespace, `SELECT CONCAT(User, ' ', ssl_type) FROM mysql.user WHERE User LIKE 'main\_%'`)
		Expect(accounts).To(HaveLen(3))
		Expect(accounts).To(HaveEach(HaveSuffix(" ANY")))
	})

	It("replaces the certificate of the API, and the authority of all servers, without a lost request", func(ctx SpecContext) {
		requests := shared.StartLoad(ctx, shared.Requests{
			URLs:  []string{shared.ServiceURL(ctx, apiURL+"/flavors")},
			Token: signIn(ctx, cloudNamespace).provider.Token(), PerSecond: 5,
			TLS: trusting(of.first.PEM, of.second.PEM),
		})
		setAPICertificate(ctx, of.second, of.first.PEM, of.second.PEM)
		awaitAPICertificate(ctx, of.second)
		awaitTrust(ctx, string(of.first.PEM)+string(of.second.PEM))
		for _, server := range tlsServers {
			present(ctx, server, certificateOf(of.second, inAYear(), server.hosts()...))
		}
		awaitTrust(ctx, string(of.second.PEM))
		floor := requests.Floor()
		answered, lost := requests.Stop()
		AddReportEntry("requests", fmt.Sprintf("%d answered, %d lost", answered, len(lost)))
		Expect(lost).To(BeEmpty(), func() string {
			return kubectl(ctx, "get", "events", "--namespace="+cloudNamespace, "--sort-by=.lastTimestamp", "--field-selector=involvedObject.kind=Pod")
		})
		Expect(answered).To(BeNumerically(">=", floor))
		bootServer(ctx, cloudNamespace, "over-new-tls")
	}, SpecTimeout(15*time.Minute))
}

// Servers of cell2 in examples/production, whose authority no other server has. The Service of its
// MariaDB has no pods at first.
const (
	cell2MariaDB  = "mariadb-cell2"
	cell2RabbitMQ = "rabbitmq-cell2"
	edgeMariaDB   = "edge-mariadb"
)

// deployCellServers makes what examples/production has for each cell: the Services of its
// servers, which for cell1 are those of the Nova, and the Secrets of their administrators. The
// certificates of cell2's servers are of the signer.
func deployCellServers(ctx context.Context, signer certificatetest.Authority) {
	GinkgoHelper()
	for _, server := range []struct{ of, admin, name string }{
		{"mariadb", "mariadb-admin", edgeMariaDB},
		{"rabbitmq", "rabbitmq-default-user", cell2RabbitMQ},
	} {
		admin := secret(ctx, cloudNamespace, server.admin)
		setSecret(ctx, cloudNamespace, server.of+"-cell1-admin", admin)
		copyService(ctx, cloudNamespace, server.of, server.of+"-cell1", server.of)

		host := "." + cloudNamespace + ".svc.cluster.local"
		setSecret(ctx, cloudNamespace, server.name+"-tls", certificateOf(signer, inAYear(), server.of+"-cell2"+host, server.name+host))
		admin["ca.crt"] = string(signer.PEM)
		setSecret(ctx, cloudNamespace, server.of+"-cell2-admin", admin)
		deployAgain(ctx, cloudNamespace, server.of, server.name)
	}
}

// reachCell lists the services in the database of a cell, and calls its conductor, which cell0 does
// not have, with the configuration of a pod and the mapping of the cell. A second argument replaces
// the authority of the message bus.
const reachCell = `
import sys
import nova.cmd
from nova import config, context, objects, rpc
import oslo_messaging as messaging
config.parse_args(["reach-cell"])
objects.register_all()
admin = context.get_admin_context()
mapping = next(m for m in objects.CellMappingList.get_all(admin) if m.name == sys.argv[1])
for authority in sys.argv[2:]:
    mapping.transport_url = mapping.transport_url.replace(f"{sys.argv[1]}-messagebus-ca.crt", authority)
with context.target_cell(admin, mapping) as cell:
    print(sorted(s.host for s in objects.ServiceList.get_all(cell)))
    if mapping.is_cell0():
        sys.exit()
    client = rpc.ClientRouter(rpc.get_client(messaging.Target(topic="conductor", namespace="baseapi", version="1.0"))).client(cell)
    print(client.prepare(timeout=30).call(cell, "ping", arg="over TLS"))
`

// expectReached expects that a global service and the conductor of cell1 reach the database and the
// message bus of cell2, and verify both with the authority of the cell.
func expectReached(ctx context.Context, nova string) {
	GinkgoHelper()
	Expect(query(ctx, cloudNamespace, "SELECT name FROM "+nova+"_api.cell_mappings"+
		" WHERE database_connection LIKE '%?ssl\\_ca=\\%2Fetc\\%2Fnova\\%2Fcell2-database-ca.crt'"+
		" AND transport_url LIKE '%&ssl=1&ssl\\_ca\\_file=\\%2Fetc\\%2Fnova\\%2Fcell2-messagebus-ca.crt'")).To(Equal([]string{"cell2"}))
	for _, service := range []string{"superconductor", "cell1-conductor"} {
		Eventually(func(g Gomega) { // the service restarts
			out, err := execIn(ctx, cloudNamespace, nova+"-"+service+"-0", "python3", "-c", reachCell, "cell2")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(And(ContainSubstring(nova+"-cell2-conductor-0"), ContainSubstring("over TLS")))
		}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
	}
	_, err := execIn(ctx, cloudNamespace, nova+"-cell2-conductor-0", "timeout", "60", "python3", "-c", reachCell, "cell0")
	Expect(err).NotTo(HaveOccurred(), "cell0 has another authority than cell2")
	for _, cell := range []string{"cell1", "cell2"} { // which read the mappings of cell0 and of each other
		log := kubectl(ctx, "logs", nova+"-"+cell+"-conductor-0", "--namespace="+cloudNamespace)
		Expect(log).NotTo(Or(ContainSubstring("CERTIFICATE_VERIFY_FAILED"), ContainSubstring("FileNotFoundError")), cell)
	}
}

// expectRefused expects that a client of cell2's message bus that trusts the Nova's authority alone
// refuses the server. oslo.messaging logs the reason, and tries again without end.
func expectRefused(ctx context.Context, nova string) {
	GinkgoHelper()
	limited := append([]string{"timeout", "30", "python3", "-c", reachCell}, "cell2", "messagebus-ca.crt")
	_, err := execIn(ctx, cloudNamespace, nova+"-superconductor-0", limited...)
	Expect(err).To(MatchError(ContainSubstring("CERTIFICATE_VERIFY_FAILED")))
}

// present replaces a server's certificate. The kubelet updates a Secret's files in a pod
// within minutes, and at once after a change of the pod.
func present(ctx context.Context, server tlsServer, certificate map[string]string) {
	GinkgoHelper()
	setSecret(ctx, cloudNamespace, server.name+"-tls", certificate)
	awaitFile(ctx, server.name, "/certificate/tls.crt", certificate["tls.crt"])
	server.reload(ctx)
}

// awaitFile waits until a file of a Secret or ConfigMap has its newest content in the pod
// of a server. It changes an annotation of the pod, so that the kubelet updates the file.
func awaitFile(ctx context.Context, server, path, content string) {
	GinkgoHelper()
	pods := podsOf(ctx, cloudNamespace, map[string]string{"app.kubernetes.io/name": server})
	Expect(pods).To(HaveLen(1))
	Eventually(func(g Gomega) {
		touch := fmt.Sprintf(`{"metadata": {"annotations": {"e2e.asterism.dev/touched": %q}}}`, time.Now())
		g.Expect(k8s.Patch(ctx, &pods[0], client.RawPatch(types.MergePatchType, []byte(touch)))).To(Succeed())
		found, err := execIn(ctx, cloudNamespace, pods[0].Name, "cat", path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(content))
	}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
}

// trustOf sets the authority in the Secret of an administrator.
func trustOf(ctx context.Context, admin, authority string) {
	GinkgoHelper()
	values := secret(ctx, cloudNamespace, admin)
	values["ca.crt"] = authority
	setSecret(ctx, cloudNamespace, admin, values)
}

// trustInDemo sets the authority that Keystone, Placement and the client trust.
func trustInDemo(ctx context.Context, authority string) {
	GinkgoHelper()
	apply(ctx, cloudNamespace, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: authority}\ndata: {ca.crt: %q}\n", authority))
}

// awaitTrust sets the authorities that all clients trust, and waits until all pods of main
// are replaced.
func awaitTrust(ctx context.Context, authorities string) {
	GinkgoHelper()
	began := time.Now().Truncate(time.Second)
	trustInDemo(ctx, authorities)
	for _, user := range []string{"keystone", "placement", "openstackclient"} {
		awaitFile(ctx, user, "/authority/ca.crt", authorities)
	}
	for _, server := range tlsServers {
		trustOf(ctx, server.admin, authorities)
		trustOf(ctx, "main-"+server.admin, authorities)
	}
	for _, service := range []string{"superconductor", "cell1-conductor", "scheduler", "metadata", "api"} {
		Eventually(func(g Gomega) {
			trusted := secret(ctx, cloudNamespace, connectionsOf(ctx, cloudNamespace, "main-"+service))
			files := []string{"database-ca.crt", "messagebus-ca.crt", "identity-ca.crt"}
			if service == "cell1-conductor" { // whose database-ca.crt is the authority of cell0
				files = append(files, "cell_database-ca.crt")
			}
			for _, file := range files {
				g.Expect(trusted[file]).To(Equal(authorities), "%s of %s", file, service)
			}
			pods := podsOf(ctx, cloudNamespace, map[string]string{"app.kubernetes.io/instance": "main-" + service})
			pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }) // of Jobs
			g.Expect(pods).NotTo(BeEmpty())
			for _, pod := range pods {
				g.Expect(pod.CreationTimestamp.Time).NotTo(BeTemporally("<", began), pod.Name)
			}
		}).WithContext(ctx).Should(Succeed(), func() string { return explain(cloudNamespace) })
	}
	awaitSettled(ctx, cloudNamespace)
}
