package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaMetadata",
	Sample:   "../../config/samples/metadata.yaml",
	Required: []string{"apiDatabaseSecretRef", "cell0DatabaseSecretRef", "messageBusSecretRef", "metadataSecretRef"},
	Defaults: map[string]any{"mode": "Global"},
	Accepts: []TableEntry{
		Entry("the most workers and threads", `spec: {workers: 64, threads: 32}`),
		Entry("no identity", `spec: {identitySecretRef: null}`),
	},
	Refuses: []TableEntry{
		Entry("no workers", `spec: {workers: 0}`, "spec.workers in body should be greater than or equal to 1"),
		Entry("too many workers", `spec: {workers: 65}`, "spec.workers in body should be less than or equal to 64"),
		Entry("no threads", `spec: {threads: 0}`, "spec.threads in body should be greater than or equal to 1"),
		Entry("too many threads", `spec: {threads: 33}`, "spec.threads in body should be less than or equal to 32"),
		Entry("a metadata service per cell", `spec: {mode: PerCell}`, `Unsupported value: "PerCell": supported values: "Global"`),
	},
	Columns: map[string]any{"Mode": "Global"},
}

func TestAdmission(t *testing.T) { admission.Run(t) }
