package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

const crds = "../../config/crd"

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, crds)
	RegisterFailHandler(Fail)
	RunSpecs(t, "NovaCompute admission")
}

// ironic is a patch for the sample with driver Fake.
func ironic(fields string) string {
	return `spec: {driver: Ironic, ironic: {secretRef: {name: ironic}` + fields + `}}`
}

// libvirt is a patch for the sample with driver Fake.
func libvirt(fields string) string { return `spec: {driver: Libvirt, libvirt: {` + fields + `}}` }

const byLabel = `nodeSelector: {example.org/servers: rack1}`

var _ = Describe("NovaCompute", Ordered, func() {
	var (
		server        enginetest.Admission
		sample, nodes *unstructured.Unstructured // with driver Fake and Ironic
	)
	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), crds)
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/fake.yaml", "NovaCompute")
		nodes = enginetest.ReadSample(GinkgoTB(), "../../config/samples/ironic.yaml", "NovaCompute")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("a name of 52 characters", `metadata: {name: a`+strings.Repeat("2", 51)+`}`),
		Entry("no image", `spec: {containerImage: null}`),
		Entry("an Ironic", ironic("")),
		Entry("a shard and a group", ironic(`, shard: rack_1.A, conductorGroup: hall-2`)),
		Entry("a libvirt", libvirt(byLabel)),
		Entry("a libvirt without KVM", libvirt(byLabel+`, hostStorage: RunOnHost, virtType: QEMU`)),
	)
	It("accepts the sample of an Ironic", func() {
		_, err := server.Create(nodes, `{}`)
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a name of 53 characters", `metadata: {name: a`+strings.Repeat("2", 52)+`}`, "metadata.name must be at most 52 lower-case letters"),
		Entry("a name with a dot", `metadata: {name: a.compute}`, "metadata.name must be at most 52 lower-case letters"),
		Entry("no driver", `spec: {driver: null}`, "spec.driver: Required value"),
		Entry("an unknown driver", `spec: {driver: VMware}`, "spec.driver: Unsupported value"),
		Entry("no Secret", `spec: {computeConfigSecretRef: null}`, "spec.computeConfigSecretRef: Required value"),
		Entry("an Ironic without its settings", `spec: {driver: Ironic}`, "must have ironic for driver Ironic and for no other driver"),
		Entry("settings of an Ironic for another driver", `spec: {ironic: {secretRef: {name: ironic}}}`, "must have ironic for driver Ironic and for no other driver"),
		Entry("a shard with a space", ironic(`, shard: "a b"`), "spec.ironic.shard in body should match"),
		Entry("a libvirt without its settings", `spec: {driver: Libvirt}`, "must have libvirt for driver Libvirt and for no other driver"),
		Entry("settings of a libvirt for another driver", `spec: {libvirt: {`+byLabel+`}}`, "must have libvirt for driver Libvirt and for no other driver"),
		Entry("a libvirt for every node", libvirt("nodeSelector: {}"), "spec.libvirt.nodeSelector in body should have at least 1 properties"),
		Entry("other storage programs", libvirt(byLabel+", hostStorage: Container"), "spec.libvirt.hostStorage: Unsupported value"),
		Entry("other virtual machines", libvirt(byLabel+", virtType: Xen"), "spec.libvirt.virtType: Unsupported value"),
		Entry("replicas", `spec: {replicas: 2}`, `unknown field "spec.replicas"`),
	)

	DescribeTable("follows", func(patch string) {
		_, err := server.Update(nodes, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("another image", `spec: {containerImage: "registry.example/next:1"}`),
		Entry("another Secret", `spec: {computeConfigSecretRef: {name: other}}`),
		Entry("another account for Ironic", `spec: {ironic: {secretRef: {name: other}}}`),
	)

	DescribeTable("keeps", func(patch, message string) {
		_, err := server.Update(nodes, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("the driver", `spec: {driver: Fake, ironic: null}`, "must not change: another driver does not know the servers"),
		Entry("no shard", `spec: {ironic: {shard: b}}`, "must not change shard or conductorGroup"),
		Entry("the group", `spec: {ironic: {conductorGroup: rack2}}`, "must not change shard or conductorGroup"),
		Entry("the group, also if it is removed", `spec: {ironic: {conductorGroup: null}}`, "must not change shard or conductorGroup"),
	)

	It("keeps the nodes of a libvirt", func() {
		stored, err := server.Create(sample, libvirt(byLabel))
		Expect(err).NotTo(HaveOccurred())
		stored.SetResourceVersion("")
		_, err = server.Update(stored, `spec: {libvirt: {nodeSelector: {example.org/servers: rack2}}}`)
		Expect(err).To(MatchError(ContainSubstring("must not change: the servers on the nodes belong to this compute")))
	})

	It("shows its driver and its message", func() {
		Expect(server.Columns(sample, `
conditions:
- {type: Ready, status: "False", reason: Waiting, message: "Secret cell1-compute-config does not exist", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{"Ready": "False", "Driver": "Fake", "Message": "Secret cell1-compute-config does not exist"}))
	})
})
