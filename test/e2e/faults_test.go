package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/certificatetest"
)

// silentServer is a server that never answers: the queues of its ports are full, so Linux
// drops new connections.
const silentServer = `
apiVersion: v1
kind: Pod
metadata: {name: silent-server, labels: {app.kubernetes.io/name: silent-server}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: silent-server
    image: asterism.dev/demo/openstack:trixie
    imagePullPolicy: IfNotPresent
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    command:
    - python3
    - -c
    - |
      import signal, socket
      kept = []
      for port in 3306, 5672, 15672:
          server = socket.socket()
          server.bind(("0.0.0.0", port))
          server.listen(0)
          kept.append(server)
          for _ in range(3):
              client = socket.socket()
              client.setblocking(False)
              client.connect_ex(("127.0.0.1", port))
              kept.append(client)
      signal.pause()
`

// faultyService is a Service whose selector the test changes.
const faultyService = `
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  selector: {app.kubernetes.io/name: nobody}
  ports: [{name: mysql, port: 3306}]
`

// applyProduction applies the example for production on one node, without its memcached and public
// address, and with further patches.
func applyProduction(ctx context.Context, name, patches string) {
	GinkgoHelper()
	kustomize(ctx, fmt.Sprintf(`
namespace: %s
resources: [%s]
patches:
- target: {kind: ControlPlane}
  patch: |-
    - {op: replace, path: /metadata/name, value: %s}
    - {op: replace, path: /spec/containerImage, value: "asterism.dev/demo/openstack:trixie"}
    - {op: remove, path: /spec/nova/memcachedSecretRef}
    - {op: remove, path: /spec/nova/api/endpoints}
%s`, cloudNamespace, repository("examples", "production-small"), name, patches))
}

// applyMain applies the example for production with the servers of this cloud. Its only cell has the
// bus and the MariaDB of the Nova, and its API serves TLS. While other pods start, this API answers
// requests that are counted, and gets its share of the node.
func applyMain(ctx context.Context) {
	GinkgoHelper()
	applyProduction(ctx, "main", `
    - {op: replace, path: /spec/database, value: {serviceRef: {name: faulty-mariadb}, adminSecretRef: {name: main-mariadb-admin}}}
    - {op: replace, path: /spec/messageBus/adminSecretRef/name, value: main-rabbitmq-default-user}
    - {op: replace, path: /spec/identity/adminSecretRef/name, value: main-keystone-admin}
    - {op: add, path: /spec/nova/api/tlsSecretRef, value: {name: `+apiCertificate+`}}
    - {op: replace, path: /spec/nova/api/resources/requests/cpu, value: 100m}
    - {op: replace, path: /spec/nova/cells, value: [{name: cell1}]}
`)
}

// applySecond applies the example for production with two pods of its API, and with the region of
// main. Its cells have their own servers: those of cell2 have another authority, and the database
// server is missing at first. No spec needs pods of its scheduler and metadata service.
func applySecond(ctx context.Context) {
	GinkgoHelper()
	applyProduction(ctx, "second", `
    - {op: add, path: /spec/nova/api/replicas, value: 2}
    - {op: add, path: /spec/nova/metadata/replicas, value: 0}
    - {op: add, path: /spec/nova/scheduler, value: {replicas: 0}}
`)
}

// retryWithin limits the time from the return of a server to success: the longest back-off,
// 30 s, and the work itself on a busy machine. Without a retry nothing would happen for hours.
const retryWithin = 2 * time.Minute

// others is the number of Novas beside one whose server is silent, which all proceed within
// othersWithin on a busy machine: if each waited for an attempt at this server, 5 s, that
// would take 100 s.
const (
	others       = 20
	othersWithin = time.Minute
)

// The administrators and servers of this cloud make one mistake after the other. Its servers
// refuse connections without TLS.
var _ = Describe("A cloud with faults", Ordered, SpecPriority(3), func() {
	var (
		signers authorities
		nova    = func() *unstructured.Unstructured { return object("Nova", cloudNamespace, "main") }
		admins  map[string]map[string]string
	)
	// setAdmin writes an administrator's Secret, with a wrong password unless it is "".
	setAdmin := func(ctx context.Context, name, password string) {
		values := map[string]string{}
		for key, value := range admins[name] {
			values[key] = value
		}
		if password != "" {
			values["password"] = password
		}
		setSecret(ctx, cloudNamespace, "main-"+name, values)
	}

	BeforeAll(func(ctx SpecContext) {
		signers = authorities{certificatetest.NewAuthority(GinkgoTB()), certificatetest.NewAuthority(GinkgoTB())}
		deployTLS(ctx, signers)
		handOver(ctx, cloudNamespace, sharedOperators)
		admins = map[string]map[string]string{}
		for _, name := range []string{"mariadb-admin", "rabbitmq-default-user", "keystone-admin"} {
			admins[name] = secret(ctx, cloudNamespace, name)
		}
		apply(ctx, cloudNamespace, silentServer+"---"+fmt.Sprintf(faultyService, "faulty-mariadb")+"---"+fmt.Sprintf(faultyService, cell2MariaDB))
	})

	It("names a server that refuses connections", func(ctx SpecContext) {
		for name := range admins {
			setAdmin(ctx, name, "wrong")
		}
		applyMain(ctx)
		awaitInfrastructure(ctx, cloudNamespace)
		awaitFalse(ctx, nova(), "DatabaseReady", "DatabaseUnreachable", "faulty-mariadb.e2e-cloud.svc.cluster.local:3306", "refused")
	})

	Describe("TLS", func() { refusalSpec(&signers) })

	It("names a server that does not answer, while twenty other Novas proceed", func(ctx SpecContext) {
		point(ctx, "faulty-mariadb", "silent-server")
		awaitFalse(ctx, nova(), "DatabaseReady", "DatabaseUnreachable", "faulty-mariadb.e2e-cloud.svc.cluster.local:3306", "timed out")
		for i := range others {
			other := object("Nova", cloudNamespace, fmt.Sprintf("other-%02d", i))
			other.Object["spec"] = read(ctx, "Nova", cloudNamespace, "main").Object["spec"]
			Expect(unstructured.SetNestedField(other.Object, "nowhere", "spec", "database", "adminSecretRef", "name")).To(Succeed())
			Expect(k8s.Create(ctx, other, client.FieldOwner(tester))).To(Succeed())
		}
		created := time.Now()
		for i := range others {
			awaitWithin(ctx, othersWithin-time.Since(created), "Nova", cloudNamespace, fmt.Sprintf("other-%02d", i), func(g Gomega, o *unstructured.Unstructured) {
				g.Expect(conditionOf(o, "InputsReady").message).To(ContainSubstring("Secret nowhere"))
			})
		}
		for i := range others {
			Expect(k8s.Delete(ctx, object("Nova", cloudNamespace, fmt.Sprintf("other-%02d", i)))).To(Succeed())
		}
	})

	It("continues when the server is back, and reports a wrong password", func(ctx SpecContext) {
		execute(ctx, cloudNamespace, "CREATE DATABASE main_cell0 COMMENT 'another owner'", "CREATE TABLE main_cell0.foreign_table (id INT)")
		point(ctx, "faulty-mariadb", "mariadb")
		awaitWithin(ctx, retryWithin, "Nova", cloudNamespace, "main", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "DatabaseReady").reason).To(Equal("DatabaseDenied"))
		})
	})

	It("does not change a foreign database, vhost and user", func(ctx SpecContext) {
		setAdmin(ctx, "mariadb-admin", "")
		awaitFalse(ctx, nova(), "DatabaseReady", "Conflict", "main_cell0")
		Expect(query(ctx, cloudNamespace, "SELECT CONCAT(SCHEMA_COMMENT, ' ', TABLE_NAME) FROM information_schema.SCHEMATA JOIN information_schema.TABLES ON TABLE_SCHEMA = SCHEMA_NAME WHERE SCHEMA_NAME = 'main_cell0'")).
			To(Equal([]string{"another owner foreign_table"}))
		Expect(rabbit(ctx, cloudNamespace, http.MethodPut, "vhosts/main_api", map[string]string{"description": "another owner"}, nil)).To(Equal(http.StatusCreated))
		execute(ctx, cloudNamespace, "DROP DATABASE main_cell0")

		awaitFalse(ctx, nova(), "MessageBusReady", "MessageBusDenied", "rabbitmq.e2e-cloud.svc.cluster.local:15671")
		setAdmin(ctx, "rabbitmq-default-user", "")
		awaitFalse(ctx, nova(), "MessageBusReady", "Conflict", "main_api")
		var vhost struct{ Description string }
		Expect(rabbit(ctx, cloudNamespace, http.MethodGet, "vhosts/main_api", nil, &vhost)).To(Equal(http.StatusOK))
		Expect(vhost.Description).To(Equal("another owner"))
		Expect(rabbit(ctx, cloudNamespace, http.MethodDelete, "vhosts/main_api", nil, nil)).To(Equal(http.StatusNoContent))

		awaitFalse(ctx, nova(), "IdentityReady", "IdentityDenied", "keystone.e2e-cloud.svc.cluster.local:5000")
		admin, user := signIn(ctx, cloudNamespace), accountOf(ctx, "main_nova", "main")
		admin.makeUser(ctx, user, "another owner")
		setAdmin(ctx, "keystone-admin", "")
		awaitFalse(ctx, nova(), "IdentityReady", "Conflict", user)
		admin.removeUser(ctx, user)
	})

	It("becomes Ready, and runs a server", func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
		Expect(typeOf(ctx, cloudNamespace, "queues/main_cell1/conductor")).To(Equal("quorum"))
		deployCompute(ctx, cloudNamespace, "main-cell1")
		bootServer(ctx, cloudNamespace, "kept")
	})

	Describe("TLS", func() { tlsSpecs(&signers) })

	It("deploys a cell although another is broken, and repairs the broken cell, whose servers have another authority", func(ctx SpecContext) {
		deployCellServers(ctx, signers.first)
		applySecond(ctx)
		awaitReady(ctx, "NovaCell", cloudNamespace, "second-cell1")
		awaitFalse(ctx, object("NovaCell", cloudNamespace, "second-cell2"), "DatabaseReady", "DatabaseUnreachable", cell2MariaDB+".e2e-cloud.svc.cluster.local:3306")
		awaitReady(ctx, "NovaAPI", cloudNamespace, "second-api")
		Expect(kubectl(ctx, "get", "poddisruptionbudget/second-api", "--namespace="+cloudNamespace, "--output=jsonpath={.status.disruptionsAllowed}")).To(Equal("1"))
		point(ctx, cell2MariaDB, edgeMariaDB)
		awaitWithin(ctx, retryWithin, "NovaCell", cloudNamespace, "second-cell2", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "DatabaseReady").status).To(Equal("True"), "%s", conditionOf(o, "DatabaseReady"))
		})
		awaitReady(ctx, "NovaCell", cloudNamespace, "second-cell2")
		expectReached(ctx, "second")
		expectRefused(ctx, "second")
	})

	It("separates two Novas", func(ctx SpecContext) {
		awaitFalse(ctx, object("Nova", cloudNamespace, "second"), "EndpointsReady", "Conflict", "RegionOne")
		Eventually(func() []string { return cellsOf(ctx, cloudNamespace, "second") }).WithContext(ctx).Should(ConsistOf("cell0", "cell1", "cell2"))
		Expect(cellsOf(ctx, cloudNamespace, "main")).To(ConsistOf("cell0", "cell1"))
		Expect(signIn(ctx, cloudNamespace).computeEndpoints(ctx)).To(HaveEach(HaveField("URL", "https://main-api.e2e-cloud.svc.cluster.local:8774/v2.1")))
	})

	It("serves its users with the account of its services while the administrator's Secret has a wrong address of Keystone", func(ctx SpecContext) {
		before, admin := servicePods(ctx, cloudNamespace, "main"), secret(ctx, cloudNamespace, "main-keystone-admin") // with the present authority
		right := admin["authURL"]
		admin["authURL"] = strings.Replace(right, ":5000", ":5999", 1)
		setSecret(ctx, cloudNamespace, "main-keystone-admin", admin)
		awaitFalse(ctx, nova(), "IdentityReady", "IdentityUnreachable", "keystone.e2e-cloud.svc.cluster.local:5999")
		awaitWithin(ctx, retryWithin, "Nova", cloudNamespace, "main", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "IdentityReady").status).To(Equal("False"))
			g.Expect(conditionOf(o, "Available").status).To(Equal("True"), "%s", conditionOf(o, "Available"))
		})
		admin["authURL"] = right
		setSecret(ctx, cloudNamespace, "main-keystone-admin", admin)
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
		Expect(servicePods(ctx, cloudNamespace, "main")).To(Equal(before))
	})

	It("reports a stopped RabbitMQ, restarts no pod, and recovers by itself", func(ctx SpecContext) {
		before := servicePods(ctx, cloudNamespace, "main")
		_, err := execIn(ctx, cloudNamespace, "rabbitmq-0", "/usr/lib/rabbitmq/bin/rabbitmqctl", "stop_app")
		Expect(err).NotTo(HaveOccurred())
		for _, conductor := range []string{"main-superconductor", "main-cell1-conductor"} {
			awaitWithin(ctx, patience, "NovaConductor", cloudNamespace, conductor, func(g Gomega, o *unstructured.Unstructured) {
				g.Expect(conditionOf(o, "WorkloadReady").status).To(Equal("False"))
			})
		}
		_, err = execIn(ctx, cloudNamespace, "rabbitmq-0", "/usr/lib/rabbitmq/bin/rabbitmqctl", "start_app")
		Expect(err).NotTo(HaveOccurred())
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
		Expect(servicePods(ctx, cloudNamespace, "main")).To(Equal(before))
		for _, conductor := range []string{"main-superconductor-0", "main-cell1-conductor-0"} {
			Expect(kubectl(ctx, "get", "pod", conductor, "--namespace="+cloudNamespace, "--output=jsonpath={.status.containerStatuses[*].restartCount}")).To(Equal("0"), conductor)
		}
	})

	It("loses no data when the pods of MariaDB and RabbitMQ are deleted", func(ctx SpecContext) {
		databases, vhosts := databasesOf(ctx, cloudNamespace, "main"), rabbitNames(ctx, cloudNamespace, "vhosts")
		kubectl(ctx, "delete", "pods", "mariadb-0", "rabbitmq-0", "--namespace="+cloudNamespace)
		awaitInfrastructure(ctx, cloudNamespace)
		Expect(databasesOf(ctx, cloudNamespace, "main")).To(Equal(databases))
		Eventually(func() error { // kube-proxy learns of the pods, and Keystone has to reconnect
			return InterceptGomegaFailure(func() {
				Expect(rabbitNames(ctx, cloudNamespace, "vhosts")).To(Equal(vhosts))
				Expect(signIn(ctx, cloudNamespace).activeServers(ctx)).To(ContainElement(HaveField("Name", "kept")))
			})
		}).WithContext(ctx).Should(Succeed())
		awaitReady(ctx, "ControlPlane", cloudNamespace, "main")
	})

	deletionSpecs()
})

// point changes a Service's selector to the pods of a name.
func point(ctx context.Context, service, name string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "service", service, "--namespace="+cloudNamespace, "--type=merge", `--patch={"spec":{"selector":{"app.kubernetes.io/name":"`+name+`"}}}`)
}

// accountOf returns the name of an account of a Nova. It ends in digits of a hash of the
// Nova's UID, so that it is unique.
func accountOf(ctx context.Context, account, nova string) string {
	GinkgoHelper()
	sum := sha256.Sum256([]byte(read(ctx, "Nova", cloudNamespace, nova).GetUID()))
	return account + "_" + hex.EncodeToString(sum[:3])
}

// deployCompute deploys examples/demo-compute for a cell, and waits until its host is mapped.
func deployCompute(ctx context.Context, namespace, cell string) {
	GinkgoHelper()
	kustomize(ctx, fmt.Sprintf(`
namespace: %s
resources: [%s]
images: [{name: %s, newTag: %s}]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/template/spec/volumes/1/secret/secretName, value: %s-compute-config}
`, namespace, repository("examples", "demo-compute"), openStackName, release, cell))
	awaitWithin(ctx, patience, "NovaCell", namespace, cell, func(g Gomega, o *unstructured.Unstructured) {
		mapped, _, _ := unstructured.NestedInt64(o.Object, "status", "hosts", "mapped")
		g.Expect(mapped).To(Equal(int64(1)))
	})
}
