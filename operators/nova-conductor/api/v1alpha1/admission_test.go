package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

const (
	superSample = "../../config/samples/superconductor.yaml"
	cellSample  = "../../config/samples/cell.yaml"
)

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, "../../config/crd")
	RegisterFailHandler(Fail)
	RunSpecs(t, "NovaConductor admission")
}

var _ = Describe("NovaConductor", Ordered, func() {
	var (
		server      enginetest.Admission
		super, cell *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		super = enginetest.ReadSample(GinkgoTB(), superSample, "NovaConductor")
		cell = enginetest.ReadSample(GinkgoTB(), cellSample, "NovaConductor")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(super, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("an identity", `spec: {identitySecretRef: {name: nova-identity}}`),
		Entry("a schema that somebody else manages", `spec: {schema: {management: External}}`),
		Entry("a held rollout", `spec: {rollout: Held}`),
		Entry("no pods", `spec: {replicas: 0}`),
		Entry("a name of 50 characters", `metadata: {name: a2345678901234567890123456789012345678901234567890}`),
	)

	It("accepts a cell's conductor with and without API access", func() {
		_, err := server.Create(cell, `{}`)
		Expect(err).NotTo(HaveOccurred())
		_, err = server.Create(cell, `spec: {apiDatabaseSecretRef: {name: api-database}}`)
		Expect(err).NotTo(HaveOccurred())
	})

	It("defaults what is left out", func() {
		stored, err := server.Create(cell, `{}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(And(
			HaveKeyWithValue("replicas", BeEquivalentTo(1)),
			HaveKeyWithValue("rollout", "Automatic"),
			HaveKeyWithValue("schema", HaveKeyWithValue("management", "Automatic")),
		))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(super, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no role", `spec: {role: null}`, `spec.role: Required value`),
		Entry("an unknown role", `spec: {role: Global}`, `supported values: "Super", "Cell"`),
		Entry("a superconductor without the API database", `spec: {apiDatabaseSecretRef: null}`, "must have apiDatabaseSecretRef for role Super"),
		Entry("no database", `spec: {databaseSecretRef: null}`, "spec.databaseSecretRef: Required value"),
		Entry("no message bus", `spec: {messageBusSecretRef: null}`, "spec.messageBusSecretRef: Required value"),
		Entry("no image", `spec: {containerImage: null}`, "spec.containerImage: Required value"),
		Entry("an unknown schema management", `spec: {schema: {management: Manual}}`, `supported values: "Automatic", "External"`),
		Entry("an unknown rollout", `spec: {rollout: Paused}`, `supported values: "Automatic", "Held"`),
		Entry("a name of 51 characters", `metadata: {name: a23456789012345678901234567890123456789012345678901}`, "metadata.name must be at most 50 lower-case letters"),
		Entry("a name with a dot", `metadata: {name: super.conductor}`, "metadata.name must be at most 50 lower-case letters"),
		Entry("a field that does not exist", `spec: {replica: 2}`, `unknown field "spec.replica"`),
	)

	DescribeTable("on update", func(patch, message string) {
		_, err := server.Update(super, patch)
		if message == "" {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError(ContainSubstring(message)))
		}
	},
		Entry("keeps the role", `spec: {role: Cell}`, "must not change: create another NovaConductor for the other role"),
		Entry("follows the Secrets", `spec: {databaseSecretRef: {name: cell0-database-2}}`, ""),
		Entry("follows the triggers", `spec: {restartTriggers: {cell1: "2", cell2: "1"}}`, ""),
	)

	It("shows its state and can be scaled", func() {
		Expect(server.Columns(super, `
readyReplicas: 1
conditions:
- {type: Ready, status: "False", reason: Waiting, message: Secret bus lacks key hostname, lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "False", "Role": "Super", "Pods": 1.0, "Message": "Secret bus lacks key hostname",
		}))
		Expect(server.Scale(super, 3)).To(BeEquivalentTo(3))
	})
})
