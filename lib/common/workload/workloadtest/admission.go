package workloadtest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

// Admission checks the CustomResourceDefinition of one service with a real API server. Each
// table has the entries of the kind; Run adds the entries for the ServiceSpec of every kind.
// Patches are merge patches of enginetest.Admission.
type Admission struct {
	// Kind of the service.
	Kind string
	// Sample is a file with the object that the patches change. The API server must also
	// accept the objects of the kind in the other files of the folder.
	Sample string
	// MaxName is the greatest length of a name, 0 for 50.
	MaxName int
	// Required lists the references to Secrets that the definition requires.
	Required []string
	// Defaults are the default values of fields of the spec; replicas need not be listed.
	Defaults map[string]any
	// Accepts has entries with a patch.
	Accepts []ginkgo.TableEntry
	// Refuses has entries with a patch and a part of the message.
	Refuses []ginkgo.TableEntry
	// Keeps has entries with a patch that is refused after creation, and a part of
	// the message.
	Keeps []ginkgo.TableEntry
	// Columns are the columns of `kubectl get`; Ready, Pods, Desired and Message need
	// not be listed.
	Columns map[string]any
	// Status is YAML with the fields of the status that Columns show.
	Status string

	server enginetest.Admission
	sample *unstructured.Unstructured
}

const crds = "../../config/crd"

// Run runs the test of an API package, beginning with enginetest.Conventions.
func (a *Admission) Run(t *testing.T) {
	t.Helper()
	enginetest.Conventions(t, crds)
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.Describe(a.Kind, ginkgo.Ordered, ginkgo.ContinueOnFailure, a.specs)
	ginkgo.RunSpecs(t, a.Kind+" admission")
}

func (a *Admission) specs() {
	ginkgo.BeforeAll(func() {
		a.server = enginetest.NewAdmission(ginkgo.GinkgoTB(), crds)
		a.sample = enginetest.ReadSample(ginkgo.GinkgoTB(), a.Sample, a.Kind)
	})
	badSecret, otherSecret := a.references()
	longest, badNames := a.names()
	ginkgo.DescribeTable("accepts", a.accepts, accepted, longest, a.Accepts)
	ginkgo.It("accepts every sample", a.acceptsSamples)
	ginkgo.It("sets the defaults of absent fields", a.defaults)
	ginkgo.DescribeTable("refuses", a.refuses, refused, badNames, badSecret, a.Refuses)
	ginkgo.DescribeTable("follows", a.follows, followed, otherSecret)
	if len(a.Keeps) > 0 {
		ginkgo.DescribeTable("keeps", a.keeps, a.Keeps)
	}
	ginkgo.DescribeTable("shows", a.shows,
		ginkgo.Entry("Ready", "True", "Complete", ""),
		ginkgo.Entry("the message of an object that is not Ready", "False", "Waiting", "Secret bus lacks key hostname: add the key"),
	)
	ginkgo.It("can be scaled", func() {
		gomega.Expect(a.server.Scale(a.sample, 3)).To(gomega.BeEquivalentTo(3))
	})
}

func (a *Admission) accepts(patch string) {
	_, err := a.server.Create(a.sample, patch)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

func (a *Admission) refuses(patch, message string) {
	_, err := a.server.Create(a.sample, patch)
	gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(message)))
}

func (a *Admission) follows(patch string) {
	_, err := a.server.Update(a.sample, patch)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

func (a *Admission) keeps(patch, message string) {
	_, err := a.server.Update(a.sample, patch)
	gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(message)))
}

func (a *Admission) acceptsSamples() {
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(a.Sample), "*.yaml"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(paths).To(gomega.ContainElement(a.Sample))
	for _, path := range paths {
		_, err := a.server.Create(enginetest.ReadSample(ginkgo.GinkgoTB(), path, a.Kind), `{}`)
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), path)
	}
}

func (a *Admission) defaults() {
	defaults := map[string]any{"replicas": 1}
	maps.Copy(defaults, a.Defaults)
	var none []string
	for field := range defaults {
		none = append(none, field+": null")
	}
	stored, err := a.server.Create(a.sample, "spec: {"+strings.Join(none, ", ")+"}")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for field, value := range defaults {
		gomega.Expect(stored.Object["spec"]).To(gomega.HaveKeyWithValue(field, gomega.BeEquivalentTo(value)))
	}
}

func (a *Admission) shows(ready, reason, message string) {
	columns := map[string]any{"Ready": ready, "Pods": 2.0, "Desired": 3.0, "Message": message}
	maps.Copy(columns, a.Columns)
	sample := a.sample.DeepCopy()
	gomega.Expect(unstructured.SetNestedField(sample.Object, int64(3), "spec", "replicas")).To(gomega.Succeed())
	gomega.Expect(a.server.Columns(sample, `
readyReplicas: 2
conditions:
- {type: Ready, status: "`+ready+`", reason: `+reason+`, message: "`+message+`", lastTransitionTime: "2026-01-01T00:00:00Z"}
`+a.Status)).To(gomega.Equal(columns))
}

// references returns the entries for the required references: the API server refuses bad, and
// accepts a change to other.
func (a *Admission) references() (bad, other []ginkgo.TableEntry) {
	for _, field := range a.Required {
		bad = append(bad,
			ginkgo.Entry("no "+field, `spec: {`+field+`: null}`, "spec."+field+": Required value"),
			ginkgo.Entry("an empty "+field, `spec: {`+field+`: {name: ""}}`, "spec."+field+".name in body should be at least 1 chars long"),
			ginkgo.Entry("no name in "+field, `spec: {`+field+`: {name: No-Name}}`, "spec."+field+".name in body should match"),
		)
		other = append(other, ginkgo.Entry("another "+field, `spec: {`+field+`: {name: other}}`))
	}
	return bad, other
}

// names returns the entries for metadata.name: the longest name, and names that are refused.
func (a *Admission) names() (longest, bad []ginkgo.TableEntry) {
	limit := cmp.Or(a.MaxName, 50)
	patch := func(name string) string { return "metadata: {name: " + name + "}" }
	message := fmt.Sprintf("metadata.name must be at most %d lower-case letters", limit)
	return []ginkgo.TableEntry{ginkgo.Entry("the longest name", patch("a"+strings.Repeat("2", limit-1)))}, []ginkgo.TableEntry{
		ginkgo.Entry("a name that is too long", patch("a"+strings.Repeat("2", limit)), message),
		ginkgo.Entry("a name that begins with a digit", patch("1service"), message),
		ginkgo.Entry("a name with a dot", patch("a.service"), message),
	}
}

const (
	badSource  = "must have exactly one of content, configMapKeyRef and secretKeyRef"
	badTrigger = "must have keys of at most 63 and values of at most 64 characters"
)

var accepted = []ginkgo.TableEntry{
	ginkgo.Entry("the sample", `{}`),
	ginkgo.Entry("no pods", `spec: {replicas: 0}`),
	ginkgo.Entry("the most pods", `spec: {replicas: 64}`),
	ginkgo.Entry("resources", `spec: {resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}}`),
	ginkgo.Entry("a snippet of 20 KiB", `spec: {customServiceConfig: "`+strings.Repeat("#", 20480)+`"}`),
	ginkgo.Entry("the most Secrets with snippets", `spec: {customServiceConfigSecretRefs: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: `+strings.Repeat("h", 200)+`}]}`),
	ginkgo.Entry("files that a service reads by their name", `spec: {extraFiles: [{name: api_audit_map.conf, content: ""}, {name: logging.conf, content: ""}, {name: rootwrap.conf, content: ""}]}`),
	ginkgo.Entry("files from content, ConfigMap and Secret", `
spec:
  extraFiles:
  - {name: policy.yaml, content: "a: b"}
  - {name: paste.ini, configMapKeyRef: {name: paste, key: paste.ini}}
  - {name: logging.yaml, secretKeyRef: {name: logging, key: logging.yaml}}
`),
	ginkgo.Entry("every pod setting", `
spec:
  pod:
    nodeSelector: {node-role.kubernetes.io/infra: ""}
    tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
    labels: {cost-centre: cloud}
    annotations: {k8s.v1.cni.cncf.io/networks: internalapi}
    priorityClassName: openstack
    imagePullSecrets: [{name: pull}]
    affinity:
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app.kubernetes.io/name: other}}
`),
	ginkgo.Entry("no image", `spec: {containerImage: null}`),
	ginkgo.Entry("a CA file", `spec: {caFileRefs: [{name: authorities, key: part1-ca.crt}]}`),
	ginkgo.Entry("the longest trigger", `spec: {restartTriggers: {`+strings.Repeat("k", 63)+`: `+strings.Repeat("v", 64)+`}}`),
}

var refused = []ginkgo.TableEntry{
	ginkgo.Entry("a field that does not exist", `spec: {replica: 2}`, `unknown field "spec.replica"`),
	ginkgo.Entry("an empty image", `spec: {containerImage: ""}`, "spec.containerImage in body should be at least 1 chars long"),
	ginkgo.Entry("fewer than no pods", `spec: {replicas: -1}`, "spec.replicas in body should be greater than or equal to 0"),
	ginkgo.Entry("too many pods", `spec: {replicas: 65}`, "spec.replicas in body should be less than or equal to 64"),
	ginkgo.Entry("devices", `spec: {resources: {claims: [{name: gpu}]}}`, "spec.resources: Invalid value: must not have claims: the pods get no devices"),
	ginkgo.Entry("mistyped resources", `spec: {resources: {request: {cpu: 100m}}}`, `unknown field "spec.resources.request"`),
	ginkgo.Entry("a snippet beyond 20 KiB", `spec: {customServiceConfig: "`+strings.Repeat("#", 20481)+`"}`, "Too long: may not be more than 20480 bytes"),
	ginkgo.Entry("a file without a source", `spec: {extraFiles: [{name: policy.yaml}]}`, badSource),
	ginkgo.Entry("a file with two sources", `spec: {extraFiles: [{name: policy.yaml, content: "", secretKeyRef: {name: a, key: b}}]}`, badSource),
	ginkgo.Entry("a file of options", `spec: {extraFiles: [{name: 99-mine.conf, content: ""}]}`, "must not end in .conf, except api_audit_map.conf, logging.conf and rootwrap.conf: options belong in customServiceConfig"),
	ginkgo.Entry("a file named like the effective view", `spec: {extraFiles: [{name: mine.effective, content: ""}]}`, "must not end in .effective"),
	ginkgo.Entry("nine Secrets with snippets", `spec: {customServiceConfigSecretRefs: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, {name: i}]}`, "must have at most 8 items"),
	ginkgo.Entry("a Secret with a snippet and a long name", `spec: {customServiceConfigSecretRefs: [{name: `+strings.Repeat("h", 201)+`}]}`, "must have names of at most 200 characters"),
	ginkgo.Entry("a file named like a directory of options", `spec: {extraFiles: [{name: mine.conf.d, content: ""}]}`, "must not end in .conf.d or -ca.crt"),
	ginkgo.Entry("a file outside its directory", `spec: {extraFiles: [{name: ../policy.yaml, content: ""}]}`, "spec.extraFiles[0].name in body should match"),
	ginkgo.Entry("two files of one name", `spec: {extraFiles: [{name: a, content: ""}, {name: a, content: ""}]}`, "Duplicate value"),
	ginkgo.Entry("a CA file with another ending", `spec: {caFileRefs: [{name: authorities, key: policy.yaml}]}`, "must have keys that end in -ca.crt"),
	ginkgo.Entry("a trigger's key of 64 characters", `spec: {restartTriggers: {`+strings.Repeat("k", 64)+`: v}}`, badTrigger),
	ginkgo.Entry("a trigger's value of 65 characters", `spec: {restartTriggers: {k: `+strings.Repeat("v", 65)+`}}`, badTrigger),
	ginkgo.Entry("a label by which the operator finds its pods", `spec: {pod: {labels: {app.kubernetes.io/instance: other}}}`, "must have keys that do not begin with app.kubernetes.io/"),
	ginkgo.Entry("a label with a value of 64 characters", `spec: {pod: {labels: {a: `+strings.Repeat("v", 64)+`}}}`, "values of at most 63 characters"),
	ginkgo.Entry("an annotation of the operator", `spec: {pod: {annotations: {asterism.dev/config-hash: mine}}}`, "must have keys that do not begin with asterism.dev/"),
	ginkgo.Entry("a constraint without topology", `spec: {pod: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}}`, "topologyKey: Required value"),
	ginkgo.Entry("a mistyped affinity", `spec: {pod: {affinity: {podAntiAfinity: {}}}}`, `unknown field "spec.pod.affinity.podAntiAfinity"`),
	ginkgo.Entry("an affinity without topology", `spec: {pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}}`, "topologyKey: Required value"),
}

var followed = []ginkgo.TableEntry{
	ginkgo.Entry("another image", `spec: {containerImage: "registry.example/next:1"}`),
	ginkgo.Entry("other triggers", `spec: {restartTriggers: {first: "2", second: "1"}}`),
}
