package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaConductor",
	Sample:   "../../config/samples/superconductor.yaml",
	Required: []string{"databaseSecretRef", "messageBusSecretRef"},
	Defaults: map[string]any{"rollout": "Automatic", "schema": map[string]any{"management": "Automatic"}},
	Accepts: []TableEntry{
		Entry("an identity", `spec: {identitySecretRef: {name: nova-identity}}`),
		Entry("an external schema management", `spec: {schema: {management: External}}`),
		Entry("a held rollout", `spec: {rollout: Held}`),
		Entry("the conductor of a cell with the API database", `spec: {role: Cell}`),
		Entry("the authority of cell0", `spec: {role: Cell, cell0DatabaseSecretRef: {name: cell0-database}}`),
		Entry("the conductor of a cell without the API database", `spec: {role: Cell, apiDatabaseSecretRef: null}`),
	},
	Refuses: []TableEntry{
		Entry("no role", `spec: {role: null}`, `spec.role: Required value`),
		Entry("an unknown role", `spec: {role: Global}`, `supported values: "Super", "Cell"`),
		Entry("a superconductor without the API database", `spec: {apiDatabaseSecretRef: null}`, "must have apiDatabaseSecretRef for role Super"),
		Entry("a superconductor with cell0 twice", `spec: {cell0DatabaseSecretRef: {name: cell0-database}}`, "must have cell0DatabaseSecretRef only with role Cell and apiDatabaseSecretRef"),
		Entry("the authority of cell0 without the API database", `spec: {role: Cell, apiDatabaseSecretRef: null, cell0DatabaseSecretRef: {name: cell0-database}}`, "must have cell0DatabaseSecretRef only with role Cell and apiDatabaseSecretRef"),
		Entry("an unknown schema management", `spec: {schema: {management: Manual}}`, `supported values: "Automatic", "External"`),
		Entry("an unknown rollout", `spec: {rollout: Paused}`, `supported values: "Automatic", "Held"`),
	},
	Keeps: []TableEntry{
		Entry("the role", `spec: {role: Cell}`, "must not change: create another NovaConductor for the other role"),
	},
	Columns: map[string]any{"Role": "Super"},
}

func TestAdmission(t *testing.T) { admission.Run(t) }
