package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

const routeWithCertificates = "must not have tlsSecretRef together with exposure.tlsSecretRef for a Route"

var admission = workloadtest.Admission{
	Kind:     "NovaNoVNCProxy",
	Sample:   "../../config/samples/novncproxy.yaml",
	MaxName:  51,
	Required: []string{"databaseSecretRef", "messageBusSecretRef"},
	Defaults: map[string]any{"exposure": map[string]any{"type": "Automatic"}},
	Accepts: []TableEntry{
		Entry("a proxy that serves TLS", `spec: {tlsSecretRef: {name: console}}`),
		Entry("a Route with a certificate", `spec: {exposure: {type: Route, tlsSecretRef: {name: console}}}`),
		Entry("TLS at an Ingress and behind it", `spec: {tlsSecretRef: {name: inner}, exposure: {type: Ingress, hostname: console.example.org, tlsSecretRef: {name: console}}}`),
	},
	Refuses: []TableEntry{
		Entry("a Route with two certificates", `spec: {tlsSecretRef: {name: a}, exposure: {type: Route, tlsSecretRef: {name: b}}}`, routeWithCertificates),
		Entry("a Route by default with two certificates", `spec: {tlsSecretRef: {name: a}, exposure: {tlsSecretRef: {name: b}}}`, routeWithCertificates),
		Entry("an Ingress without a host", `spec: {exposure: {type: Ingress}}`, "must have hostname"),
		Entry("an empty certificate", `spec: {tlsSecretRef: {name: ""}}`, "spec.tlsSecretRef.name in body should be at least 1 chars long"),
	},
	Columns: map[string]any{"Public": "https://console.example.org/vnc_lite.html"},
	Status: `
endpoints:
- {interface: Public, url: "https://console.example.org/vnc_lite.html"}
- {interface: Internal, url: "http://cell1:6080/vnc_lite.html"}
`,
}

func TestAdmission(t *testing.T) { admission.Run(t) }
