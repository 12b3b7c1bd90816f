package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	upgradeNamespace = "e2e-upgrade"
	upgradeOperators = "e2e-upgrade-operators"
)

// upgradeControlPlane has two cells, each with a compute.
const upgradeControlPlane = `
apiVersion: asterism.dev/v1alpha1
kind: ControlPlane
metadata: {name: up}
spec:
  containerImage: %[1]s
  database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}
  messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq-default-user}}
  identity: {adminSecretRef: {name: keystone-admin}}
  nova:
    api: {workers: 1}
    metadata: {workers: 1}
    upgradePolicy: {skipCheck: [hw_machine_type unset, Cinder API]} # no machine type, and no Cinder
    cells:
    - {name: cell1, computes: [%[2]s]}
    - {name: cell2, computes: [%[2]s]}
`

// upgradePhases are the phases of an upgrade that changes something.
var upgradePhases = []string{"Checking", "Schemas", "Conductors", "Services", "Computes", "Restart", "Migrations"}

// debianReleases are the releases of Debian between whose Novas the upgrades lead, for make
// e2e-upgrade. Without them, the suite has no upgrade: it would need ten minutes more, and
// another image.
var debianReleases = strings.Fields(os.Getenv("UPGRADE"))

var _ = len(debianReleases) > 1 && Describe("An upgrade", Ordered, func() { upgradeSpecs(debianReleases) })

// upgradeSpecs upgrade a Nova from one real release to another, under load, and kill its operator in
// each phase.
func upgradeSpecs(releases []string) {
	var nova cloud

	BeforeAll(func(ctx SpecContext) {
		for _, debian := range releases {
			loadRelease(ctx, debian)
		}
		deployExampleOf(ctx, releases[0], upgradeNamespace, "demo-persistent")
		deployOperators(ctx, upgradeOperators)
		handOver(ctx, upgradeNamespace, upgradeOperators)
		awaitInfrastructure(ctx, upgradeNamespace)
	})

	It("begins at a Nova of an older release", func(ctx SpecContext) {
		apply(ctx, upgradeNamespace, fmt.Sprintf(upgradeControlPlane, imageOf(releases[0]), fakeCompute(upgradeNamespace)))
		awaitReady(ctx, "ControlPlane", upgradeNamespace, "up")
		nova = signIn(ctx, upgradeNamespace)       // with the API in the catalog
		bootServer(ctx, upgradeNamespace, "first") // which also makes the flavor
		nova.bootOn(ctx, "up-cell1-fake")
		nova.bootOn(ctx, "up-cell2-fake")
		expectRelease(ctx)
	}, SpecTimeout(15*time.Minute))

	for i := 1; i < len(releases); i++ {
		It("loses no request from Debian's "+releases[i-1]+" to "+releases[i]+", and its operator is killed in each phase", func(ctx SpecContext) {
			servers := nova.activeServers(ctx)
			requests := startLoad(ctx, fmt.Sprintf("http://up-api.%s.svc:8774", upgradeNamespace), nova.provider.Token(), 20)
			former := statusOfNova(ctx, "release")
			began := time.Now()
			setImageOf(ctx, releases[i])
			AddReportEntry("phases", followUpgrade(ctx))
			awaitReady(ctx, "ControlPlane", upgradeNamespace, "up")
			AddReportEntry("time", fmt.Sprintf("Nova %s to %s in %s", former, statusOfNova(ctx, "release"), time.Since(began).Round(time.Second)))

			answered, failures := requests.Stop()
			AddReportEntry("requests", answered)
			Expect(failures).To(BeEmpty())
			Expect(answered).To(BeNumerically(">", 500))
			Expect(nova.activeServers(ctx)).To(ConsistOf(servers))
			expectRelease(ctx)
			for _, pod := range podsOf(ctx, upgradeNamespace, map[string]string{"app.kubernetes.io/part-of": "up"}) {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					Expect(pod.Spec.Containers[0].Image).To(Equal(imageOf(releases[i])), pod.Name)
				}
			}
			nova.bootOn(ctx, "up-cell1-fake")
			nova.bootOn(ctx, "up-cell2-fake")
		}, SpecTimeout(20*time.Minute))
	}

	It("refuses the former release, and no pod changes", func(ctx SpecContext) {
		before := servicePods(ctx, upgradeNamespace, "up")
		setImageOf(ctx, releases[0])
		awaitFalse(ctx, object("Nova", upgradeNamespace, "up"), "Upgraded", "UpgradeRefused", "its databases cannot go back to", "restore a backup")
		setImageOf(ctx, releases[len(releases)-1])
		awaitReady(ctx, "ControlPlane", upgradeNamespace, "up")
		Expect(servicePods(ctx, upgradeNamespace, "up")).To(Equal(before))
	}, SpecTimeout(5*time.Minute))
}

func imageOf(debian string) string { return openStackName + ":" + debian }

// loadRelease builds the image of a release of Debian, unless the cache has it, and loads it into
// the cluster.
func loadRelease(ctx context.Context, debian string) {
	GinkgoHelper()
	program := func(name string) string { return repository(".demo", "bin", name) }
	archive := repository(".demo", "images", "openstack-"+debian+".tar")
	_, err := run(ctx, "", program("images"), "openstack", "--release", debian, "--output", archive)
	Expect(err).NotTo(HaveOccurred())
	_, err = run(ctx, "", program("cluster"), "--dir", stateFolder(), "load", archive)
	Expect(err).NotTo(HaveOccurred())
}

func setImageOf(ctx context.Context, debian string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "controlplane/up", "--namespace="+upgradeNamespace, "--type=merge", `--patch={"spec":{"containerImage":"`+imageOf(debian)+`"}}`)
}

func statusOfNova(ctx context.Context, fields ...string) string {
	GinkgoHelper()
	value, _, _ := unstructured.NestedString(read(ctx, "Nova", upgradeNamespace, "up").Object, append([]string{"status"}, fields...)...)
	return value
}

// expectRelease compares the release in the status, and that of every service, with the release of
// nova-manage in the superconductor's pod.
func expectRelease(ctx context.Context) {
	GinkgoHelper()
	version, err := execIn(ctx, upgradeNamespace, "up-superconductor-0", "nova-manage", "--version")
	Expect(err).NotTo(HaveOccurred())
	Expect(statusOfNova(ctx, "release")).To(Equal(strings.TrimSpace(version)))
	for _, cell := range []string{"cell0", "cell1", "cell2"} {
		Eventually(func() []string { // until the rows of the former pods are deleted
			return query(ctx, upgradeNamespace, "SELECT COUNT(DISTINCT version) FROM up_"+cell+".services WHERE deleted = 0")
		}).WithContext(ctx).WithTimeout(3*time.Minute).Should(Equal([]string{"1"}), "services of different releases in "+cell)
	}
}

// followUpgrade kills the operator as soon as the upgrade is in a phase, until it is done. It
// returns the phases and their times.
func followUpgrade(ctx context.Context) (times []string) {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object("Nova", "", "").GroupVersionKind())
	var seen []string
	var began time.Time
	next := func(phase string) {
		if len(seen) > 0 {
			times = append(times, fmt.Sprintf("%s %s", seen[len(seen)-1], time.Since(began).Round(time.Second)))
		}
		if began = time.Now(); phase != "" {
			seen = append(seen, phase)
			killOf(ctx, upgradeOperators, novaOperator)
		}
	}
	events, err := k8s.Watch(ctx, list, client.InNamespace(upgradeNamespace))
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	limit := time.After(15 * time.Minute)
	for {
		select {
		case event, open := <-events.ResultChan():
			Expect(open).To(BeTrue(), "the API server has ended the watch")
			o, ok := event.Object.(*unstructured.Unstructured)
			Expect(ok).To(BeTrue(), "%v", event.Object)
			phase, _, _ := unstructured.NestedString(o.Object, "status", "upgrade", "phase")
			switch {
			case phase != "" && (len(seen) == 0 || seen[len(seen)-1] != phase):
				By(phase)
				next(phase)
			case phase == "" && len(seen) > 0:
				next("")
				Expect(seen).To(Equal(upgradePhases))
				return times
			}
		case <-limit:
			Fail("the upgrade is not done after 15 minutes:\n" + explain(upgradeNamespace))
		}
	}
}
