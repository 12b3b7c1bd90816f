package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, "../../config/crd")
	RegisterFailHandler(Fail)
	RunSpecs(t, "NovaScheduler admission")
}

var _ = Describe("NovaScheduler", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/scheduler.yaml", "NovaScheduler")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("resources", `spec: {resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}}`),
		Entry("files from content, ConfigMap and Secret", `
spec:
  extraFiles:
  - {name: policy.yaml, content: "a: b"}
  - {name: api-paste.ini, configMapKeyRef: {name: paste, key: api-paste.ini}}
  - {name: logging.yaml, secretKeyRef: {name: logging, key: logging.yaml}}
`),
		Entry("every pod setting", `
spec:
  pod:
    nodeSelector: {node-role.kubernetes.io/infra: ""}
    tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
    priorityClassName: openstack
    imagePullSecrets: [{name: pull}]
    affinity:
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app.kubernetes.io/name: nova-scheduler}}
`),
		Entry("the longest trigger", `spec: {restartTriggers: {`+strings.Repeat("k", 63)+`: `+strings.Repeat("v", 64)+`}}`),
	)

	It("defaults to one replica", func() {
		stored, err := server.Create(sample, `{}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(1)))
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
		Entry("an empty image", `spec: {containerImage: ""}`, "spec.containerImage in body should be at least 1 chars long"),
		Entry("an empty reference", `spec: {databaseSecretRef: {name: ""}}`, "spec.databaseSecretRef.name in body should be at least 1 chars long"),
		Entry("a reference that is no name", `spec: {databaseSecretRef: {name: Cell0}}`, "spec.databaseSecretRef.name in body should match"),
		Entry("fewer than no pods", `spec: {replicas: -1}`, "spec.replicas in body should be greater than or equal to 0"),
		Entry("too many pods", `spec: {replicas: 65}`, "spec.replicas in body should be less than or equal to 64"),
		Entry("a snippet beyond 16 KiB", `spec: {customServiceConfig: "`+strings.Repeat("#", 16385)+`"}`, "Too long: may not be more than 16384 bytes"),
		Entry("a file without a source", `spec: {extraFiles: [{name: policy.yaml}]}`, "must have exactly one of content, configMapKeyRef and secretKeyRef"),
		Entry("a file with two sources", `spec: {extraFiles: [{name: policy.yaml, content: "", secretKeyRef: {name: a, key: b}}]}`, "must have exactly one of content, configMapKeyRef and secretKeyRef"),
		Entry("a file of options", `spec: {extraFiles: [{name: 99-mine.conf, content: ""}]}`, "must not end in .conf or .effective: options belong in customServiceConfig"),
		Entry("a file outside of its directory", `spec: {extraFiles: [{name: ../policy.yaml, content: ""}]}`, "spec.extraFiles[0].name in body should match"),
		Entry("two files of one name", `spec: {extraFiles: [{name: a, content: ""}, {name: a, content: ""}]}`, `Duplicate value`),
		Entry("a trigger's key of 64 characters", `spec: {restartTriggers: {`+strings.Repeat("k", 64)+`: v}}`, "must have keys of at most 63 and values of at most 64 characters"),
		Entry("a trigger's value of 65 characters", `spec: {restartTriggers: {k: `+strings.Repeat("v", 65)+`}}`, "must have keys of at most 63 and values of at most 64 characters"),
		Entry("a mistyped affinity", `spec: {pod: {affinity: {podAntiAfinity: {}}}}`, `unknown field "spec.pod.affinity.podAntiAfinity"`),
		Entry("an affinity without topology", `spec: {pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}}`, "topologyKey: Required value"),
		Entry("a name that begins with a digit", `metadata: {name: 1scheduler}`, "metadata.name must be at most 50 lower-case letters"),
	)

	It("shows its state and can be scaled", func() {
		Expect(server.Columns(sample, `
readyReplicas: 2
conditions:
- {type: Ready, status: "True", reason: Complete, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{"Ready": "True", "Pods": 2.0, "Message": ""}))
		Expect(server.Scale(sample, 3)).To(BeEquivalentTo(3))
	})
})
