package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaAPI",
	Sample:   "../../config/samples/api.yaml",
	Required: []string{"apiDatabaseSecretRef", "databaseSecretRef", "messageBusSecretRef", "identitySecretRef"},
	Defaults: map[string]any{"exposure": "Automatic"},
	Accepts: []TableEntry{
		Entry("a Route", `spec: {exposure: Route}`),
		Entry("no exposure", `spec: {exposure: None}`),
	},
	Refuses: []TableEntry{
		Entry("an unknown exposure", `spec: {exposure: Ingress}`, `supported values: "Automatic", "Route", "None"`),
	},
	Columns: map[string]any{"Public": "https://api-openstack.apps.example.org/v2.1"},
	Status: `
endpoints:
- {interface: Internal, url: "http://api.openstack.svc:8774/v2.1"}
- {interface: Public, url: "https://api-openstack.apps.example.org/v2.1"}
`,
}

func TestAdmission(t *testing.T) { admission.Run(t) }
