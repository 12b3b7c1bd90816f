package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	memcachedName     = "memcached"
	notifications     = "notifications"
	notificationQueue = "queues/" + notifications + "/notifications.info"

	// encryptedToken matches the name of the entry of an encrypted token: 16 bytes in Base64,
	// for some releases as Python prints bytes. The name of another entry has the 64 digits of
	// a hash (keystonemiddleware: auth_token/_cache.py, _memcache_crypt.py).
	encryptedToken = `^tokens/(b')?[A-Za-z0-9+/]{22}==`
)

// memcached is a memcached without passwords.
const memcached = `
apiVersion: v1
kind: Service
metadata: {name: memcached}
spec:
  selector: {app.kubernetes.io/name: memcached}
  ports: [{name: memcached, port: 11211}]
---
apiVersion: v1
kind: Pod
metadata: {name: memcached, labels: {app.kubernetes.io/name: memcached}}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: memcached
    image: asterism.dev/demo/openstack:trixie
    imagePullPolicy: IfNotPresent
    command: [memcached, --listen=0.0.0.0, --memory-limit=16]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    ports: [{name: memcached, containerPort: 11211}]
    readinessProbe: {tcpSocket: {port: memcached}, periodSeconds: 2}
`

// withSharedConnections makes a memcached and a bus for notifications, and returns the
// operations of a JSON patch by which the Nova of a ControlPlane uses both, and finds Placement
// by its public endpoint.
func withSharedConnections(ctx context.Context, namespace string) string {
	GinkgoHelper()
	apply(ctx, namespace, memcached)
	kubectl(ctx, "wait", "pod/"+memcachedName, "--namespace="+namespace, "--for=condition=Ready", "--timeout=10m")
	setSecret(ctx, namespace, memcachedName, map[string]string{"hostname": memcachedName + "." + namespace + ".svc.cluster.local"})
	makeBusUser(ctx, namespace, notifications, notifications, canaryBus)
	setSecret(ctx, namespace, notifications, map[string]string{
		"hostname": "rabbitmq." + namespace + ".svc.cluster.local", "vhost": notifications, "user": notifications, "password": canaryBus,
	})
	return fmt.Sprintf(`
{"op": "add", "path": "/spec/nova/memcachedSecretRef", "value": {"name": %q}},
{"op": "add", "path": "/spec/nova/notificationBusSecretRef", "value": {"name": %q}},
{"op": "add", "path": "/spec/nova/openStackServices", "value": [{"name": "Placement", "interface": "Public", "regionName": %q}]}`, memcachedName, notifications, region)
}

// sharedConnectionSpecs use the cloud of cellSpecs after withSharedConnections.
func sharedConnectionSpecs(namespace string, nova *cloud, patch func(context.Context, string)) {
	It("keeps tokens in memcached, encrypted", func(ctx SpecContext) {
		Expect(nova.activeServers(ctx)).NotTo(BeEmpty())
		Expect(nova.activeServers(ctx)).NotTo(BeEmpty())
		stats := askMemcached(ctx, namespace, "stats")
		Expect(counter(stats, "cmd_set")).To(BeNumerically(">", 0))
		Expect(counter(stats, "get_hits")).To(BeNumerically(">", 0))
		var tokens []string
		for _, line := range askMemcached(ctx, namespace, "lru_crawler metadump all") {
			key, err := url.PathUnescape(strings.TrimPrefix(strings.Fields(line)[0], "key="))
			Expect(err).NotTo(HaveOccurred())
			if !strings.HasPrefix(key, "tokens/") { // data of Nova
				continue
			}
			Expect(key).To(MatchRegexp(encryptedToken))
			Expect(strings.Join(askMemcached(ctx, namespace, "get "+key), " ")).NotTo(ContainSubstring("expires_at"))
			tokens = append(tokens, key)
		}
		Expect(tokens).NotTo(BeEmpty())
	}, SpecTimeout(12*time.Minute))

	It("sends notifications to their own bus, and none after its removal", func(ctx SpecContext) {
		var events []struct{ Payload string }
		get := map[string]any{"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"}
		Expect(rabbit(ctx, namespace, http.MethodPost, notificationQueue+"/get", get, &events)).To(Equal(http.StatusOK))
		Expect(events).To(ContainElement(HaveField("Payload", ContainSubstring("compute.instance.create.end"))), "sent by a compute")

		patch(ctx, `[{"op": "remove", "path": "/spec/nova/notificationBusSecretRef"}]`)
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		Expect(rabbit(ctx, namespace, http.MethodDelete, notificationQueue, nil, nil)).To(Equal(http.StatusNoContent))
		nova.bootOn(ctx, "demo-cell1-fake")
		Expect(rabbit(ctx, namespace, http.MethodGet, notificationQueue, nil, nil)).To(Equal(http.StatusNotFound))
	}, SpecTimeout(15*time.Minute))
}

// endpointSpec moves Placement in the catalog of the cloud of cellSpecs.
func endpointSpec(namespace string, nova *cloud) {
	It("restarts the callers of Placement when its endpoint in the catalog changes, and no other pod", func(ctx SpecContext) {
		before := uidsOf(ctx, namespace)
		moved := "http://" + kubectl(ctx, "get", "service/placement", "--namespace="+namespace, "--output=jsonpath={.spec.clusterIP}") + ":8778"
		nova.moveEndpoints(ctx, "placement", "public", moved)
		awaitWithin(ctx, patience, "Nova", namespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
			services, _, err := unstructured.NestedSlice(o.Object, "status", "openStackServices")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(services).To(ContainElement(And(HaveKeyWithValue("name", "Placement"), HaveKeyWithValue("endpoint", moved), HaveKeyWithValue("changes", int64(1)))))
		})
		callers := []string{"Pod/demo-superconductor-0", "Pod/demo-scheduler-0", "Pod/demo-cell1-conductor-0", "Pod/demo-cell2-conductor-0", "Pod/demo-cell1-fake-0", "Pod/demo-cell2-fake-0"}
		Eventually(func(g Gomega) {
			now := uidsOf(ctx, namespace)
			for _, pod := range callers {
				g.Expect(now[pod]).NotTo(Or(BeEmpty(), Equal(before[pod])), pod)
			}
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), func() string { return explain(namespace) })
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		after := uidsOf(ctx, namespace)
		others := 0
		for name, uid := range before {
			if strings.HasPrefix(name, "Pod/demo-") && (strings.Contains(name, "metadata") || strings.Contains(name, "novncproxy")) {
				Expect(after).To(HaveKeyWithValue(name, uid), "it does not call Placement")
				others++
			}
		}
		Expect(others).To(BeNumerically(">", 0))
		nova.bootOn(ctx, "demo-cell1-fake")
	}, SpecTimeout(15*time.Minute))
}

// askMemcached returns the lines of the answer to a command, without the last one, END.
func askMemcached(ctx context.Context, namespace, command string) []string {
	GinkgoHelper()
	connection, err := dial(ctx, "tcp", memcachedName+"."+namespace+".svc:11211")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	Expect(connection.SetDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	_, err = fmt.Fprintf(connection, "%s\r\n", command)
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	answer := bufio.NewScanner(connection)
	answer.Buffer(nil, 1<<20) // the greatest entry of memcached
	for answer.Scan() && answer.Text() != "END" {
		lines = append(lines, answer.Text())
	}
	Expect(answer.Err()).NotTo(HaveOccurred())
	return lines
}

func counter(stats []string, name string) (value int) {
	GinkgoHelper()
	for _, line := range stats {
		if _, err := fmt.Sscanf(line, "STAT "+name+" %d", &value); err == nil {
			return value
		}
	}
	Fail("memcached has no counter " + name)
	return 0
}
