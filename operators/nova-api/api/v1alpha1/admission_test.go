package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, "../../config/crd")
	RegisterFailHandler(Fail)
	RunSpecs(t, "NovaAPI admission")
}

var _ = Describe("NovaAPI", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/api.yaml", "NovaAPI")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("a Route", `spec: {exposure: Route}`),
		Entry("no exposure", `spec: {exposure: None}`),
	)

	It("defaults what is left out", func() {
		stored, err := server.Create(sample, `spec: {replicas: null, exposure: null}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(And(
			HaveKeyWithValue("replicas", BeEquivalentTo(1)),
			HaveKeyWithValue("exposure", "Automatic"),
		))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no API database", `spec: {apiDatabaseSecretRef: null}`, "spec.apiDatabaseSecretRef: Required value"),
		Entry("no cell0 database", `spec: {databaseSecretRef: null}`, "spec.databaseSecretRef: Required value"),
		Entry("no message bus", `spec: {messageBusSecretRef: null}`, "spec.messageBusSecretRef: Required value"),
		Entry("no identity", `spec: {identitySecretRef: null}`, "spec.identitySecretRef: Required value"),
		Entry("no image", `spec: {containerImage: null}`, "spec.containerImage: Required value"),
		Entry("an unknown exposure", `spec: {exposure: Ingress}`, `supported values: "Automatic", "Route", "None"`),
		Entry("a name of 51 characters", `metadata: {name: a23456789012345678901234567890123456789012345678901}`, "metadata.name must be at most 50 lower-case letters"),
	)

	It("shows its state and can be scaled", func() {
		Expect(server.Columns(sample, `
readyReplicas: 2
endpoints:
- {interface: Internal, url: "http://api.openstack.svc:8774/v2.1"}
- {interface: Public, url: "https://api-openstack.apps.example.org/v2.1"}
conditions:
- {type: Ready, status: "True", reason: Complete, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "True", "Pods": 2.0, "Public": "https://api-openstack.apps.example.org/v2.1", "Message": "",
		}))
		Expect(server.Scale(sample, 3)).To(BeEquivalentTo(3))
	})
})
