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
		Entry("no identity", `spec: {identitySecretRef: null}`),
	},
	Refuses: []TableEntry{
		Entry("a metadata service per cell", `spec: {mode: PerCell}`, `Unsupported value: "PerCell": supported values: "Global"`),
	},
	Columns: map[string]any{"Mode": "Global"},
}

func TestAdmission(t *testing.T) { admission.Run(t) }
