package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	RunSpecs(t, "ControlPlane admission")
}

// The unions, the cells and the services are types of Nova's API and are tested there.
// These tests check that a ControlPlane has the same rules at its own paths.
var _ = Describe("ControlPlane", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/controlplane.yaml", "ControlPlane")
	})

	const given = `
spec:
  database: {serviceRef: null, adminSecretRef: null, apiDatabaseSecretRef: {name: api}, cell0DatabaseSecretRef: {name: cell0}}
  messageBus: {serviceRef: null, adminSecretRef: null, connectionSecretRef: {name: bus}}
  identity: {adminSecretRef: null, connectionSecretRef: {name: nova-identity}}
  nova: {cells: [{name: cell1, %s}]}
`

	const (
		volume = `fileSystemID: fs-484648c8, accessPointID: fsap-0000000a`
		shared = `spec: {sharedVolumes: [{` + volume + `, %s}`
	)

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("a name of 24 characters", `metadata: {name: a23456789012345678901234}`),
		Entry("connection Secrets for everything", fmt.Sprintf(given, `database: {connectionSecretRef: {name: db1}}, messageBus: {connectionSecretRef: {name: bus1}}`)),
		Entry("a prefix for the database of a cell, and connection Secrets", fmt.Sprintf(given, `database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}, messageBus: {connectionSecretRef: {name: bus1}}`)+"  namePrefix: cloud"),
		Entry("the metadata Secret of a Neutron", `spec: {metadataSecretRef: {name: neutron-metadata}}`),
		Entry("no shared volumes", `spec: {sharedVolumes: []}`),
		Entry("a shared volume without an access point", `spec: {sharedVolumes: [{name: images, fileSystemID: fs-484648c8}]}`),
		Entry("a shared volume with every field", fmt.Sprintf(shared, `name: images, claimName: a.b, access: ReadOnly, mountOptions: [noexec, nosuid], capacity: 2Gi`)+`]}`),
	)

	It("sets defaults for absent fields except replicas", func() {
		stored, err := server.Create(sample, `spec: {messageBus: {queueType: null}, nova: {deletionPolicy: null, api: null}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(And(
			HaveKeyWithValue("messageBus", HaveKeyWithValue("queueType", "Quorum")),
			HaveKeyWithValue("identity", HaveKeyWithValue("region", "RegionOne")),
			HaveKeyWithValue("nova", HaveKeyWithValue("deletionPolicy", "Retain")),
			HaveKeyWithValue("nova", HaveKeyWithValue("api", map[string]any{"exposure": map[string]any{"type": "Automatic"}})),
		))
		Expect(fmt.Sprint(stored.Object["spec"])).NotTo(ContainSubstring("replicas"))
	})

	It("sets the defaults of a SharedVolume", func() {
		stored, err := server.Create(sample, fmt.Sprintf(shared, `name: images`)+`]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(HaveKeyWithValue("sharedVolumes", ConsistOf(And(
			HaveKeyWithValue("access", "ReadWrite"), HaveKeyWithValue("capacity", "1Gi"), Not(HaveKey("claimName")),
		))))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a name of 25 characters", `metadata: {name: a234567890123456789012345}`, "metadata.name must be at most 24 lower-case letters"),
		Entry("an empty image", `spec: {containerImage: ""}`, "spec.containerImage in body should be at least 1 chars long"),
		Entry("no Nova", `spec: {nova: null}`, "spec.nova: Required value"),
		Entry("no cells", `spec: {nova: {cells: null}}`, "spec.nova.cells: Required value"),
		Entry("a reserved cell name", `spec: {nova: {cells: [{name: cell0}]}}`, "must not be one of the reserved names"),
		Entry("two cells of one name", `spec: {nova: {cells: [{name: cell1}, {name: cell1}]}}`, `Duplicate value: {"name":"cell1"}`),
		Entry("a database server without its administrator", `spec: {database: {adminSecretRef: null}}`, "must have adminSecretRef together with serviceRef or host"),
		Entry("a bus without its address", `spec: {messageBus: {serviceRef: null}}`, "must have adminSecretRef together with serviceRef or host"),
		Entry("a metadata Secret without a name", `spec: {metadataSecretRef: {}}`, "spec.metadataSecretRef.name: Required value"),
		Entry("no identity", `spec: {identity: {adminSecretRef: null}}`, "must have either adminSecretRef"),
		Entry("an unknown mode of metadata", `spec: {nova: {metadata: {mode: Cell}}}`, `supported values: "Global", "PerCell", "GlobalAndPerCell"`),
		Entry("a host name for the metadata services of cells", `spec: {nova: {metadata: {mode: PerCell, exposure: {hostname: a.example.org}}}}`, "must not use metadata.exposure.hostname for the metadata services of cells as well"),
		Entry("a cell without a database, with connection Secrets", fmt.Sprintf(given, `messageBus: {connectionSecretRef: {name: bus1}}`), "every cell must have a database of its own"),
		Entry("a cell without a bus, with connection Secrets", fmt.Sprintf(given, `database: {connectionSecretRef: {name: db1}}`), "every cell must have a messageBus of its own"),
		Entry("a cell on cell0", fmt.Sprintf(given, `database: {connectionSecretRef: {name: cell0}}, messageBus: {connectionSecretRef: {name: bus1}}`), "must not use the Secret of spec.database.apiDatabaseSecretRef or cell0DatabaseSecretRef for a cell"),
		Entry("a cell on the global vhost", fmt.Sprintf(given, `database: {connectionSecretRef: {name: db1}}, messageBus: {connectionSecretRef: {name: bus}}`), "must not use the Secret of spec.messageBus.connectionSecretRef for a cell"),
		Entry("a prefix with connection Secrets only", fmt.Sprintf(given, `database: {connectionSecretRef: {name: db1}}, messageBus: {connectionSecretRef: {name: bus1}}`)+"  namePrefix: cloud", "must not have namePrefix if every connection has a connectionSecretRef"),
		Entry("two shared volumes of one name", fmt.Sprintf(shared, `name: images`)+fmt.Sprintf(`, {name: images, %s}]}`, volume), `Duplicate value: {"name":"images"}`),
		Entry("a shared volume without a name", fmt.Sprintf(shared, `claimName: images`)+`]}`, "spec.sharedVolumes[0].name: Required value"),
		Entry("a shared volume whose name is a path", fmt.Sprintf(shared, `name: ../images`)+`]}`, "spec.sharedVolumes[0].name: Invalid value"),
		Entry("a file system in upper case", `spec: {sharedVolumes: [{name: images, fileSystemID: FS-484648C8, accessPointID: fsap-0000000a}]}`, "spec.sharedVolumes[0].fileSystemID: Invalid value"),
		Entry("an unsupported mount option", fmt.Sprintf(shared, `name: images, mountOptions: [tls]`)+`]}`, "spec.sharedVolumes[0].mountOptions[0]: Unsupported value"),
	)

	DescribeTable("on update refuses", func(patch, message string) {
		_, err := server.Update(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a prefix", `spec: {namePrefix: other}`, "must not change namePrefix"),
		Entry("another region", `spec: {identity: {region: RegionTwo}}`, "must not change: the endpoints in the catalog"),
		Entry("another type of queue", `spec: {messageBus: {queueType: Classic}}`, "must not change: queues of another type require new vhosts"),
		Entry("connection Secrets of databases instead", `spec: {database: {serviceRef: null, adminSecretRef: null, apiDatabaseSecretRef: {name: a}, cell0DatabaseSecretRef: {name: b}}}`, "must not change from a server to Secrets"),
	)

	It("accepts an added cell, another cell instead, and a moved cell", func() {
		for _, cells := range []string{`[{name: cell1}, {name: cell2}]`, `[{name: cell2}]`, `[{name: cell1, messageBus: {connectionSecretRef: {name: bus1}}}]`} {
			_, err := server.Update(sample, `spec: {nova: {cells: `+cells+`}}`)
			Expect(err).NotTo(HaveOccurred())
		}
	})

	It("accepts the examples of cells, of configuration, for production and with clusters", func() {
		cells, err := filepath.Glob("../../../../examples/cells/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(cells).NotTo(BeEmpty())
		configuration, err := filepath.Glob("../../../../examples/configuration/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(configuration).NotTo(BeEmpty())
		for _, file := range slices.Concat(cells, configuration, []string{"../../../../examples/production/controlplane.yaml", "../../../../examples/demo-ha/controlplane.yaml"}) {
			_, err := server.Create(enginetest.ReadSample(GinkgoTB(), file, "ControlPlane"), `{}`)
			Expect(err).NotTo(HaveOccurred(), file)
		}
	})

	It("accepts the example for production with the fields that are comments, and the guide has the same snippet", func() {
		example, err := os.ReadFile("../../../../examples/production/controlplane.yaml")
		Expect(err).NotTo(HaveOccurred())
		// A comment has a space after the #, and a field has none, or more than one.
		complete := regexp.MustCompile(`(?m)^( *)#([^ ]|  )`).ReplaceAllString(string(example), "$1$2")
		file := filepath.Join(GinkgoT().TempDir(), "controlplane.yaml")
		Expect(os.WriteFile(file, []byte(complete), 0o600)).To(Succeed())
		object := enginetest.ReadSample(GinkgoTB(), file, "ControlPlane")
		_, err = server.Create(object, `{}`)
		Expect(err).NotTo(HaveOccurred())

		tls, _, err := unstructured.NestedString(object.Object, "spec", "nova", "api", "tlsSecretRef", "name")
		Expect(err).NotTo(HaveOccurred())
		Expect(tls).NotTo(BeEmpty())
		snippet, _, err := unstructured.NestedString(object.Object, "spec", "nova", "customServiceConfig")
		Expect(err).NotTo(HaveOccurred())
		guide, err := os.ReadFile("../../../../docs/guides/production.md")
		Expect(err).NotTo(HaveOccurred())
		indented := strings.ReplaceAll(strings.TrimSuffix(snippet, "\n"), "\n", "\n      ")
		Expect(string(guide)).To(ContainSubstring("    customServiceConfig: |\n      " + indented + "\n```"))
	})

	It("prints its columns", func() {
		Expect(server.Columns(sample, `
nova: {name: demo, ready: "False", readyCells: 0, desiredCells: 1}
conditions:
- {type: Ready, status: "False", reason: Waiting, message: Secret mariadb-admin does not exist, lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Available, status: "False", reason: Waiting, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "False", "Available": "False", "Cells": 0.0, "Desired": 1.0, "Message": "Secret mariadb-admin does not exist",
		}))
	})
})
