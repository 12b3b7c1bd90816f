package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "asterism.dev/test/cloud"
)

const haNamespace = "e2e-ha"

// maxGap is the longest time without an authenticated answer. These may follow one after the other:
// Galera needs 5 s to exclude a lost member, and at most 15 s (evs.inactive_timeout); a request that
// waited for a lost answer fails after 60 s (rpc_response_timeout); and a service notices at most
// 60 s after the loss that its RabbitMQ does not answer (heartbeat_timeout_threshold). Then
// connections are retried, at most every 5 s.
const maxGap = 3 * time.Minute

// mostLost is the number of requests with a token that may fail, of at least 120: a member that ends
// interrupts the queries that it runs.
const mostLost = 6

// maxBoot is the longest time until a server is ACTIVE: the API, a conductor, the scheduler and the
// compute may each need 60 s to notice a lost RabbitMQ. Nova does not repeat a call whose answer is
// lost: its server is then in ERROR, and the spec fails.
const maxBoot = 5 * time.Minute

// members is the number of members of each cluster.
const members = 3

// haServer is a server of examples/demo-ha: a StatefulSet whose pods are a cluster.
type haServer struct {
	name string
	// whole is a command in a pod that prints text if the pod can serve without each of the others.
	whole []string
	text  string
}

var haServers = []haServer{
	{
		name: "mariadb",
		whole: []string{
			"mariadb", "--no-defaults", "--socket=/run/mysqld/mysqld.sock", "--user=monitor", "--batch", "--skip-column-names",
			"--execute=SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')",
		},
		text: fmt.Sprintf("wsrep_local_state_comment\tSynced\nwsrep_cluster_size\t%d\n", members),
	},
	{
		name: "rabbitmq",
		whole: []string{"sh", "-ec", fmt.Sprintf(`cd /usr/lib/rabbitmq/bin
./rabbitmqctl --quiet await_online_nodes %d --timeout 60
./rabbitmq-upgrade --quiet await_online_quorum_plus_one --timeout 60
echo whole`, members)},
		text: "whole\n",
	},
}

// haKill ends a pod of a server, or none.
type haKill struct {
	name, pod string
	end       func(ctx context.Context, pod *corev1.Pod)
}

// haKills are a comparison without a kill, the deletion of each pod, and for each server a pod whose
// processes are killed, so that its container starts again.
func haKills() []haKill {
	all := []haKill{{name: "nothing"}}
	for _, server := range haServers {
		for i := range members {
			pod := fmt.Sprintf("%s-%d", server.name, i)
			all = append(all, haKill{name: pod + ", pod deleted", pod: pod, end: deleteAtOnce})
		}
		pod := fmt.Sprintf("%s-%d", server.name, members-1)
		all = append(all, haKill{name: pod + ", processes killed", pod: pod, end: killProcesses})
	}
	return all
}

func deleteAtOnce(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
}

func (k haKill) run(ctx context.Context) {
	GinkgoHelper()
	if k.pod == "" {
		return
	}
	var pod corev1.Pod
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: haNamespace, Name: k.pod}, &pod)).To(Succeed())
	k.end(ctx, &pod)
}

// outage is what clients notice of a kill.
type outage struct {
	killed     string
	sent       int           // requests, of which one in ten has a token
	lostOpen   int           // failed requests without a token
	lost       int           // failed requests with a token
	gap        time.Duration // longest time without an answer to a request with a token
	refused    int           // failed requests for a server
	active     time.Duration // from the first request for a server until it is ACTIVE; 0 if it never was
	containers int           // restarts of Nova's containers
}

// table returns a table in Markdown.
func table(outages ...outage) string {
	lines := []string{
		"",
		"| killed | requests | lost, without a token | lost, with a token | longest gap | server refused | ACTIVE after | restarts of Nova |",
		"|---|---|---|---|---|---|---|---|",
	}
	for _, o := range outages {
		active := "never"
		if o.active > 0 {
			active = fmt.Sprintf("%.1f s", o.active.Seconds())
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %.1f s | %d | %s | %d |",
			o.killed, o.sent, o.lostOpen, o.lost, o.gap.Seconds(), o.refused, active, o.containers))
	}
	return strings.Join(lines, "\n")
}

// The specs take half an hour: make e2e leaves them out, and make e2e-ha runs them.
var _ = os.Getenv("HA") != "" && Describe("A cloud on clusters of MariaDB and RabbitMQ", Ordered, ContinueOnFailure, func() {
	var outages []outage

	BeforeAll(func(ctx SpecContext) {
		loadImages(ctx, "galera")
		deployExample(ctx, haNamespace, "demo-ha")
		handOver(ctx, haNamespace, sharedOperators)
		awaitInfrastructure(ctx, haNamespace)
		manifest, err := os.ReadFile(repository("examples", "demo-ha", "controlplane.yaml"))
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, haNamespace, string(manifest))
		awaitReady(ctx, "ControlPlane", haNamespace, "ha")
		bootServer(ctx, haNamespace, "first") // which also makes the flavor
	}, NodeTimeout(20*time.Minute))

	AfterAll(func() { AddReportEntry("all outages", table(outages...)) })

	for _, kill := range haKills() {
		It("boots a server and keeps the others. Killed: "+kill.name, func(ctx SpecContext) {
			awaitWhole(ctx)
			nova := signIn(ctx, haNamespace)
			servers := nova.activeServers(ctx)
			seen := outage{killed: kill.name}
			defer func() { outages = append(outages, seen) }()
			booted := nova.endure(ctx, kill, &seen)

			Expect(nova.activeServers(ctx)).To(ContainElements(append(servers, booted)))
			Expect(seen.lostOpen).To(BeZero(), "these requests need neither MariaDB nor RabbitMQ")
			Expect(seen.gap).To(BeNumerically("<", maxGap))
			Expect(seen.lost).To(BeNumerically("<=", mostLost), "requests whose query was interrupted")
			if kill.pod == "" {
				Expect([]int{seen.lost, seen.refused, seen.containers}).To(HaveEach(0), "nothing was killed")
			}
		}, SpecTimeout(20*time.Minute))
	}
})

// endure sends requests while a pod is killed and a server is booted, until the clusters and the
// ControlPlane are as before.
func (c cloud) endure(ctx context.Context, kill haKill, seen *outage) (booted server) {
	GinkgoHelper()
	flavor, restarts := c.flavor(ctx), restartsOf(ctx)
	address := "http://ha-api." + haNamespace + ".svc:8774"
	withToken := shared.ServiceURL(ctx, address) + "/v2.1/flavors"
	requests := startLoad(ctx, address, c.provider.Token(), 20)
	defer func() {
		seen.gap = requests.Gap(withToken)
		answered, failures := requests.Stop()
		seen.sent = answered + len(failures)
		for _, failure := range failures {
			if strings.Contains(failure, withToken+":") {
				seen.lost++
			} else {
				seen.lostOpen++
			}
		}
		seen.containers = restartsOf(ctx) - restarts
		AddReportEntry("outage", table(*seen))
		if len(failures) > 0 {
			AddReportEntry("lost requests", strings.Join(failures, "\n"))
		}
	}()

	Eventually(requests.Answered).WithContext(ctx).Should(BeNumerically(">=", 50))
	kill.run(ctx)
	booted = c.bootMeanwhile(ctx, flavor, seen)
	awaitWhole(ctx)
	awaitReady(ctx, "ControlPlane", haNamespace, "ha")
	// What happens only a while after the kill counts as well.
	Eventually(requests.Answered).WithContext(ctx).Should(BeNumerically(">=", 1200))
	return booted
}

// bootMeanwhile requests a server until the API accepts it, and waits until it is ACTIVE.
func (c cloud) bootMeanwhile(ctx context.Context, flavor string, seen *outage) (booted server) {
	GinkgoHelper()
	booted.Name = "killed " + seen.killed
	began := time.Now()
	Eventually(func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		if booted.ID, err = c.boot(ctx, serverRequest(booted.Name, flavor)); err != nil {
			seen.refused++
		}
		return err
	}).WithContext(ctx).WithTimeout(maxGap).WithPolling(time.Second).Should(Succeed())
	Eventually(func() (active []server, err error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if failed, err := c.serversIn(ctx, "ERROR"); err == nil && slices.Contains(failed, booted) {
			return nil, StopTrying("the server is in ERROR: see the logs in " + logFolder())
		}
		return c.serversIn(ctx, "ACTIVE")
	}).WithContext(ctx).WithTimeout(maxBoot).WithPolling(250*time.Millisecond).Should(ContainElement(booted), func() string { return explain(haNamespace) })
	seen.active = time.Since(began)
	return booted
}

// awaitWhole waits until each cluster can lose any of its members.
func awaitWhole(ctx context.Context) {
	GinkgoHelper()
	for _, server := range haServers {
		for i := range members {
			Eventually(func() (string, error) {
				return execIn(ctx, haNamespace, fmt.Sprintf("%s-%d", server.name, i), server.whole...)
			}).WithContext(ctx).WithTimeout(5*time.Minute).WithPolling(2*time.Second).Should(Equal(server.text), func() string { return explain(haNamespace) })
		}
	}
	awaitInfrastructure(ctx, haNamespace) // the Services select all
}

// restartsOf counts the restarts of the containers of Nova.
func restartsOf(ctx context.Context) (count int) {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, haNamespace, map[string]string{"app.kubernetes.io/part-of": "ha"}) {
		for _, container := range pod.Status.ContainerStatuses {
			count += int(container.RestartCount)
		}
	}
	return count
}
