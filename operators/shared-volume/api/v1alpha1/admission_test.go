package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

const (
	definitions = "../../config/crd"
	capacity    = "must be from 1Mi to 1Ei, such as 20Gi"
)

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, definitions)
	RegisterFailHandler(Fail)
	RunSpecs(t, "admission of shared volumes")
}

var _ = Describe("SharedVolume", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), definitions)
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/sharedvolume.yaml", "SharedVolume")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("every field", `spec: {claimName: pictures.web, access: ReadOnly, capacity: 20Gi, mountOptions: [noatime, noresvport]}`),
		Entry("no access point", `spec: {accessPointID: null}`),
		Entry("a capacity in bytes", `spec: {capacity: 1048576}`),
		Entry("a capacity with a fraction", `spec: {capacity: 1.5Ti}`),
		Entry("the largest capacity", `spec: {capacity: 1Ei}`),
		Entry("the longest IDs", `spec: {fileSystemID: fs-`+strings.Repeat("0", 40)+`, accessPointID: fsap-`+strings.Repeat("f", 40)+`}`),
		Entry("a name of 63 characters", `metadata: {name: `+strings.Repeat("a", 63)+`}`),
		Entry("a name of 253 characters", `metadata: {name: `+strings.Repeat("a", 253)+`}`),
	)

	It("sets defaults", func() {
		stored, err := server.Create(sample, `{}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(And(HaveKeyWithValue("access", "ReadWrite"), HaveKeyWithValue("capacity", "1Gi"), Not(HaveKey("claimName"))))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no file system", `spec: {fileSystemID: null}`, "spec.fileSystemID: Required value"),
		Entry("a file system in upper case", `spec: {fileSystemID: FS-484648C8}`, "must be the ID of a file system"),
		Entry("hexadecimal in upper case", `spec: {fileSystemID: fs-484648C8}`, "must be the ID of a file system"),
		Entry("a file system that is too short", `spec: {fileSystemID: fs-484648c}`, "must be the ID of a file system"),
		Entry("a file system that is too long", `spec: {fileSystemID: fs-`+strings.Repeat("0", 41)+`}`, "must be the ID of a file system"),
		Entry("a file system's ARN", `spec: {fileSystemID: "arn:aws:elasticfilesystem:eu-central-1:123456789012:file-system/fs-484648c8"}`, "must be the ID of a file system"),
		Entry("a directory in the file system", `spec: {fileSystemID: "fs-484648c8:/etc"}`, "must be the ID of a file system"),
		Entry("another access point in the file system", `spec: {fileSystemID: "fs-484648c8::fsap-0"}`, "must be the ID of a file system"),
		Entry("a path upwards", `spec: {fileSystemID: "fs-484648c8/../fs-00000000"}`, "must be the ID of a file system"),
		Entry("a second line", `spec: {fileSystemID: "fs-484648c8\n"}`, "must be the ID of a file system"),
		Entry("an access point that is a file system", `spec: {accessPointID: fs-484648c8}`, "must be the ID of an access point"),
		Entry("an access point with a directory", `spec: {accessPointID: "fsap-097bd0daaba932e64:/"}`, "must be the ID of an access point"),
		Entry("an empty access point", `spec: {accessPointID: ""}`, "must be the ID of an access point"),
		Entry("an invalid name of a claim", `spec: {claimName: ../images}`, "spec.claimName in body should match"),
		Entry("a claim of 254 characters", `spec: {claimName: `+strings.Repeat("a", 254)+`}`, "may not be more than 253 bytes"),
		Entry("an unknown access", `spec: {access: ReadWriteOnce}`, `Unsupported value: "ReadWriteOnce"`),
		Entry("an option that mounts another access point", `spec: {mountOptions: ["accesspoint=fsap-00000000"]}`, `Unsupported value: "accesspoint=fsap-00000000"`),
		Entry("an option that allows writing", `spec: {access: ReadOnly, mountOptions: [rw]}`, `Unsupported value: "rw"`),
		Entry("an option twice", `spec: {mountOptions: [noatime, noatime]}`, "Duplicate value"),
		Entry("no capacity", `spec: {capacity: 0Gi}`, capacity),
		Entry("a negative capacity", `spec: {capacity: -1Gi}`, capacity),
		Entry("a capacity of a few bytes", `spec: {capacity: 1048575}`, capacity),
		Entry("a capacity beyond 1Ei", `spec: {capacity: 1025Pi}`, capacity),
		Entry("a capacity that is not a quantity", `spec: {capacity: 20 GB}`, "spec.capacity in body should match"),
		Entry("a capacity of 33 characters", `spec: {capacity: "`+strings.Repeat("0", 31)+`1G"}`, "may not be more than 32"),
		Entry("a name of 254 characters", `metadata: {name: `+strings.Repeat("a", 254)+`}`, "no more than 253"),
		Entry("a mistyped field", `spec: {filesystemID: fs-484648c8}`, `unknown field "spec.filesystemID"`),
	)

	It("shows the status in its columns", func() {
		Expect(server.Columns(sample, `
claimRef: {name: images}
fileSystemID: fs-0000000e
accessPointID: fsap-0000000f
conditions:
- {type: Ready, status: "False", reason: Denied, message: "ask", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "False", "File System": "fs-0000000e", "Access Point": "fsap-0000000f", "Claim": "images", "Message": "ask",
		}))
	})
})

var _ = Describe("SharedVolumePolicy", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), definitions)
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/sharedvolumepolicy.yaml", "SharedVolumePolicy")
		sample.SetName("admission")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("names only", `spec: {namespaces: {selector: null}}`),
		Entry("names with their UIDs", `spec: {namespaces: {uids: [0f7e1f4b-4c7e-4f0c-9d0b-8d0c6a520000]}}`),
		Entry("every namespace", `spec: {namespaces: {names: null, selector: {matchLabels: null}}}`),
		Entry("expressions", `
spec:
  namespaces:
    selector:
      matchExpressions:
      - {key: example.org/team, operator: In, values: [a, b]}
      - {key: sandbox, operator: DoesNotExist}
`),
		Entry("managed access points", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {}}]}`),
		Entry("managed access points with every field", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {rootDirectory: /a.b/_c, posixUser: {uid: 1, gid: 4294967295}, permissions: "2770", maxPerNamespace: 1000}}]}`),
		Entry("read-only access to every access point", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Any, access: ReadOnly}]}`),
	)

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("neither names nor a selector", `spec: {namespaces: {names: null, selector: null}}`, "must have names or a selector"),
		Entry("no file system", `spec: {fileSystems: []}`, "spec.fileSystems in body should have at least 1 items"),
		Entry("a file system twice", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Any}, {fileSystemID: fs-484648c8, accessPoints: Any}]}`, "Duplicate value"),
		Entry("Listed without access points", `spec: {fileSystems: [{fileSystemID: fs-484648c8}]}`, "must have accessPointIDs if accessPoints is Listed"),
		Entry("Any with access points", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Any, accessPointIDs: [fsap-097bd0daaba932e64]}]}`, "and none otherwise"),
		Entry("Managed without a description", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed}]}`, "must have managed if accessPoints is Managed"),
		Entry("Any with a description", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Any, managed: {}}]}`, "and none otherwise"),
		Entry("Managed with access points", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {}, accessPointIDs: [fsap-097bd0daaba932e64]}]}`, "and none otherwise"),
		Entry("root as the owner of files", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {posixUser: {uid: 0, gid: 5}}}]}`, "uid in body should be greater than or equal to 1"),
		Entry("the group of root", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {posixUser: {uid: 5, gid: 0}}}]}`, "gid in body should be greater than or equal to 1"),
		Entry("a directory upwards", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {rootDirectory: /a/..}}]}`, "rootDirectory in body should match"),
		Entry("the root of the file system", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {rootDirectory: /}}]}`, "rootDirectory in body should match"),
		Entry("a directory too deep for EFS", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {rootDirectory: /a/b/c}}]}`, "rootDirectory in body should match"),
		Entry("permissions in letters", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {permissions: rwx}}]}`, "permissions in body should match"),
		Entry("no access point at all", `spec: {fileSystems: [{fileSystemID: fs-484648c8, accessPoints: Managed, managed: {maxPerNamespace: 0}}]}`, "maxPerNamespace in body should be greater than or equal to 1"),
		Entry("a pattern of file systems", `spec: {fileSystems: [{fileSystemID: "fs-*", accessPoints: Any}]}`, "must be the ID of a file system"),
		Entry("values for Exists", `spec: {namespaces: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}`, "must have values for In and NotIn"),
		Entry("In without values", `spec: {namespaces: {selector: {matchExpressions: [{key: a, operator: In}]}}}`, "must have values for In and NotIn"),
		Entry("an invalid UID", `spec: {namespaces: {uids: [team-a]}}`, "should match"),
		Entry("a pattern of namespaces", `spec: {namespaces: {names: ["team-*"]}}`, "should match"),
	)
})

var _ = Describe("SharedFileSystem", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), definitions)
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/sharedfilesystem.yaml", "SharedFileSystem")
		sample.SetName("admission")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("an existing file system", `spec: {managed: null, fileSystemID: fs-484648c8}`),
		Entry("every field", `spec: {managed: {performanceMode: maxIO, throughputMode: bursting, encryption: Enabled, kmsKeyID: "arn:aws:kms:eu-central-1:123456789012:key/a", backup: Disabled, deletionPolicy: Delete}}`),
	)

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("neither", `spec: {managed: null}`, "must have either fileSystemID or managed"),
		Entry("both", `spec: {fileSystemID: fs-484648c8}`, "must have either fileSystemID or managed"),
		Entry("no mount target", `spec: {managed: {mountTargets: []}}`, "should have at least 1 items"),
		Entry("a subnet twice", `spec: {managed: {mountTargets: [{subnetID: subnet-0a1b2c3d}, {subnetID: subnet-0a1b2c3d}]}}`, "Duplicate value"),
		Entry("an address instead of a subnet", `spec: {managed: {mountTargets: [{subnetID: 10.0.0.0/24}]}}`, "subnetID in body should match"),
		Entry("a name of a security group", `spec: {managed: {mountTargets: [{subnetID: subnet-0a1b2c3d, securityGroupIDs: [default]}]}}`, "should match"),
		Entry("a key without encryption", `spec: {managed: {encryption: Disabled, kmsKeyID: a}}`, "must have encryption Enabled to have kmsKeyID"),
		Entry("maxIO with elastic throughput", `spec: {managed: {performanceMode: maxIO}}`, "must have throughputMode bursting to have performanceMode maxIO"),
		Entry("an unknown deletionPolicy", `spec: {managed: {deletionPolicy: Recycle}}`, `Unsupported value: "Recycle"`),
	)
})

var _ = Describe("SharedVolumeDriver", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), definitions)
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/sharedvolumedriver.yaml", "SharedVolumeDriver")
	})

	// Only dry runs: the operator has created SharedVolumeDriver cluster.
	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("another name", `metadata: {name: other}`, "metadata.name must be cluster: a cluster has one driver"),
		Entry("an unknown managementState", `spec: {managementState: External}`, `Unsupported value: "External"`),
		Entry("AWS without a region", `spec: {aws: {}}`, "spec.aws.region: Required value"),
		Entry("the zone of a region", `spec: {aws: {region: eu-central-1a}}`, "spec.aws.region in body should match"),
		Entry("a server instead of a region", `spec: {aws: {region: "evil.example.org/"}}`, "spec.aws.region in body should match"),
		Entry("a role that is a user", `spec: {aws: {region: eu-central-1, roleARN: "arn:aws:iam::123456789012:user/a"}}`, "spec.aws.roleARN in body should match"),
		Entry("a mistyped toleration", `spec: {tolerations: [{kee: a}]}`, `unknown field "spec.tolerations[0].kee"`),
	)
})
