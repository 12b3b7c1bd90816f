package packages

import (
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func withOLM() {
	var olmImage string
	It("starts OLM", func(ctx SpecContext) {
		awaitPrograms(ctx)
		olmImage = pushOLM(imagePrefix)
		installOLM(ctx, olmImage)
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
		kubectl(ctx, "apply", "-f", repository("config", "operator-namespaces.yaml"))
		kubectl(ctx, "apply", "-f", policies(first))
	})

	It("names a package that the catalog lacks", func(ctx SpecContext) {
		serveOtherCatalog(ctx, first, pushCatalogWithout(imagePrefix, first.folder, "nova-scheduler-operator"))
		subscribe(ctx, "control-plane.yaml")
		Eventually(func() string {
			return kubectl(ctx, "get", "subscription/asterism", "--namespace", systemNamespace, `--output=jsonpath={.status.conditions[?(@.type=="ResolutionFailed")].message}`)
		}).WithContext(ctx).Should(ContainSubstring("nova-scheduler-operator"), explain(ctx))
		Expect(phases(ctx, systemNamespace)).To(BeEmpty())
		kubectl(ctx, "delete", "subscription/asterism", "--namespace", systemNamespace)
	})

	It("installs all operators by one command and one Subscription", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		_, err := run(ctx, "", "make", "--no-print-directory", "-C", repository(), "cli", "BIN="+folder)
		Expect(err).NotTo(HaveOccurred())
		measure("all operators Succeeded", func() {
			_, err := run(ctx, "", filepath.Join(folder, "kubectl-asterism"), "install", "--with=olm", "--from="+first.folder,
				"--catalog-namespace="+olmNamespace, "--namespaces="+cloudNamespace, "--yes")
			Expect(err).NotTo(HaveOccurred(), explain(ctx))
			expectInstalled(ctx, systemNamespace, first, first.operators()...)
		})
		plans := list(ctx, "installplans", systemNamespace)
		Expect(plans).To(HaveLen(1))
		content := kubectl(ctx, "get", "installplan", plans[0].Metadata.Name, "--namespace", systemNamespace, "--output=json")
		AddReportEntry("InstallPlan", fmt.Sprintf("%d bytes", len(content)))
		Expect(len(content)).To(BeNumerically("<", 1_000_000))
	})

	It("gives operators rights in the namespaces of the OperatorGroup alone", func(ctx SpecContext) {
		expectRightsInCloud(ctx) // OLM gives the same rights in the namespace of the operators
		for _, operator := range first.operators() {
			Expect(can(ctx, operator, "list", "rolebindings.rbac.authorization.k8s.io", cloudNamespace)).To(Equal("no"), operator)
		}
	})

	It("gives an operator rights on its own OperatorCondition alone", func(ctx SpecContext) {
		operators := first.operators()
		for i, operator := range operators {
			other := operators[(i+1)%len(operators)]
			Expect(can(ctx, operator, "patch", condition(operator, first), systemNamespace)).To(Equal("yes"), operator)
			Expect(can(ctx, operator, "patch", condition(other, first), systemNamespace)).To(Equal("no"), operator)
			for _, verb := range []string{"list", "watch", "create", "delete"} {
				Expect(can(ctx, operator, verb, "operatorconditions.operators.coreos.com", systemNamespace)).To(Equal("no"), operator)
			}
		}
	})

	It("runs operators of a ControlPlane with an ACTIVE server", func(ctx SpecContext) { deployCloud(ctx, "with-olm") })

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("reports a second OperatorGroup, and changes nothing that runs", func(ctx SpecContext) {
		operatorPods := podUIDs(ctx, systemNamespace)
		expectNoInterruption(ctx, func() {
			apply(ctx, secondOperatorGroup)
			Eventually(func() map[string]string { return reasons(ctx, systemNamespace) }).WithContext(ctx).
				Should(HaveEach("TooManyOperatorGroups"), explain(ctx))
			Consistently(func() map[string]string { return podUIDs(ctx, systemNamespace) }, 10*time.Second, time.Second).Should(Equal(operatorPods))
			measure("the second OperatorGroup deleted: all operators Succeeded", func() {
				kubectl(ctx, "delete", "operatorgroup/second", "--namespace", systemNamespace)
				expectInstalled(ctx, systemNamespace, first, first.operators()...)
			})
		})
		Expect(podUIDs(ctx, systemNamespace)).To(Equal(operatorPods))
	})

	sharedVolumesWithOLM()

	It("runs no image that the list of the release lacks", func(ctx SpecContext) {
		pods := podUIDs(ctx, cloudNamespace)
		overrideImages(ctx, systemNamespace, "nova-operator", map[string]string{"RELATED_IMAGE_NOVA": novaImage()})
		Eventually(func() string {
			return kubectl(ctx, "get", "deployment/asterism-nova-operator", "--namespace", systemNamespace, "--output=jsonpath={.spec.template.spec.containers[0].env}")
		}).WithContext(ctx).Should(ContainSubstring(novaImage()))
		awaitRollout(ctx, first)
		kubectl(ctx, "patch", "controlplane/demo", "--namespace", cloudNamespace, "--type=json", "--patch", `[{"op": "remove", "path": "/spec/containerImage"}]`)
		expectReady(ctx)
		Expect(podUIDs(ctx, cloudNamespace)).To(Equal(pods), "the default image is the image of the pods")
		expectListedImages(ctx, first, novaImage(), olmImage)
	})

	It("upgrades operators through the catalog, except while a schema is synchronized", func(ctx SpecContext) {
		unlock := lockSchema(ctx)
		job := restartSchemaJob(ctx)
		for _, operator := range synchronizing {
			Eventually(func() string { return upgradeable(ctx, operator, first) }).WithContext(ctx).Should(Equal("False the upgrade waits until these Jobs end: Job " + job))
		}
		held := podUIDs(ctx, systemNamespace)
		expectNoInterruption(ctx, func() {
			kubectl(ctx, "apply", "-f", policies(second))
			serveCatalog(ctx, second)
			for _, operator := range synchronizing {
				Eventually(func() string { return message(ctx, operator, second) }).WithContext(ctx).Should(ContainSubstring("Job "+job), explain(ctx))
			}
			Consistently(func() map[string]string { return podUIDs(ctx, systemNamespace) }, 10*time.Second, time.Second).
				Should(SatisfyAll(podsOf("nova", held), podsOf("nova-conductor", held)))
			measure("the schema is synchronized: all operators Succeeded", func() {
				unlock()
				expectInstalled(ctx, systemNamespace, second, second.operators()...)
			})
		})
		measure("the operator of shared volumes Succeeded", func() { expectInstalled(ctx, storageNamespace, second, "shared-volume") })
		for _, operator := range synchronizing {
			Eventually(func() string { return upgradeable(ctx, operator, second) }).WithContext(ctx).Should(Equal("True "))
		}
	})

	It("removes operators", func(ctx SpecContext) {
		deleteControlPlanes(ctx)
		removeDriver(ctx)
		for _, namespace := range []string{systemNamespace, storageNamespace} {
			removeWithOLM(ctx, namespace)
		}
		kubectl(ctx, "delete", "-f", policies(second))
		By("deleting the roles of users, which OLM keeps")
		kubectl(ctx, "delete", "clusterroles", ofAsterism)
		expectRemoved(ctx)
		deleteKinds(ctx)
		deleteNamespaces(ctx, cloudNamespace, systemNamespace, storageNamespace)
	})
}
