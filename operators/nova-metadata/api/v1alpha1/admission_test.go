package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaMetadata",
	Sample:   "../../config/samples/metadata.yaml",
	Required: []string{"messageBusSecretRef", "metadataSecretRef"},
	Defaults: map[string]any{"mode": "Global"},
	Accepts: []TableEntry{
		Entry("the most workers and threads", `spec: {workers: 64, threads: 32}`),
		Entry("the service of a cell", `spec: {mode: Cell, apiDatabaseSecretRef: null, cell0DatabaseSecretRef: null, databaseSecretRef: {name: cell1-database}}`),
		Entry("no identity", `spec: {identitySecretRef: null}`),
		Entry("an Ingress", `spec: {exposure: {type: Ingress, hostname: metadata.example.org, tlsSecretRef: {name: metadata-tls}}}`),
		Entry("a load balancer", `spec: {exposure: {type: LoadBalancer}}`),
		Entry("TLS in the pods", `spec: {tlsSecretRef: {name: metadata-tls}}`),
	},
	Refuses: []TableEntry{
		Entry("no workers", `spec: {workers: 0}`, "spec.workers in body should be greater than or equal to 1"),
		Entry("too many workers", `spec: {workers: 65}`, "spec.workers in body should be less than or equal to 64"),
		Entry("no threads", `spec: {threads: 0}`, "spec.threads in body should be greater than or equal to 1"),
		Entry("too many threads", `spec: {threads: 33}`, "spec.threads in body should be less than or equal to 32"),
		Entry("an empty certificate", `spec: {tlsSecretRef: {name: ""}}`, "spec.tlsSecretRef.name in body should be at least 1 chars long"),
		Entry("an unknown mode", `spec: {mode: PerCell}`, `Unsupported value: "PerCell": supported values: "Global", "Cell"`),
		Entry("a global service without the API database", `spec: {apiDatabaseSecretRef: null}`, "must have apiDatabaseSecretRef and cell0DatabaseSecretRef, and not databaseSecretRef, for mode Global"),
		Entry("the service of a cell with the API database", `spec: {mode: Cell, databaseSecretRef: {name: cell1-database}}`, "must have databaseSecretRef, and neither apiDatabaseSecretRef nor cell0DatabaseSecretRef, for mode Cell"),
		Entry("an Ingress without a host name", `spec: {exposure: {type: Ingress}}`, "must have hostname"),
	},
	Columns: map[string]any{"Mode": "Global", "Public": "https://metadata.example.org"},
	Status: `
endpoints:
- {interface: Internal, url: "http://metadata.openstack.svc:8775"}
- {interface: Public, url: "https://metadata.example.org"}
`,
}

func TestAdmission(t *testing.T) { admission.Run(t) }
