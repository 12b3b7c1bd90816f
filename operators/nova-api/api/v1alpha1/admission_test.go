package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaAPI",
	Sample:   "../../config/samples/api.yaml",
	Required: []string{"apiDatabaseSecretRef", "cell0DatabaseSecretRef", "messageBusSecretRef", "identitySecretRef"},
	Defaults: map[string]any{"exposure": map[string]any{"type": "Automatic"}},
	Accepts: []TableEntry{
		Entry("the most workers and threads", `spec: {workers: 64, threads: 32}`),
		Entry("a Route with a host name and a certificate", `spec: {exposure: {type: Route, hostname: api.example.org, tlsSecretRef: {name: api-tls}}}`),
		Entry("an Ingress", `spec: {exposure: {type: Ingress, hostname: api.example.org, ingressClassName: public, scheme: HTTPS}}`),
		Entry("a Gateway", `spec: {exposure: {type: Gateway, hostname: api.example.org, parentRef: {name: public, namespace: gateways, sectionName: https}}}`),
		Entry("a load balancer", `spec: {exposure: {type: LoadBalancer, annotations: {example.org/pool: public}}}`),
		Entry("no exposure", `spec: {exposure: {type: None}}`),
		Entry("TLS in the pods, and a certificate of their Route", `spec: {tlsSecretRef: {name: inner}, exposure: {type: Route, tlsSecretRef: {name: outer}}}`),
	},
	Refuses: []TableEntry{
		Entry("no workers", `spec: {workers: 0}`, "spec.workers in body should be greater than or equal to 1"),
		Entry("too many workers", `spec: {workers: 65}`, "spec.workers in body should be less than or equal to 64"),
		Entry("no threads", `spec: {threads: 0}`, "spec.threads in body should be greater than or equal to 1"),
		Entry("too many threads", `spec: {threads: 33}`, "spec.threads in body should be less than or equal to 32"),
		Entry("an empty certificate", `spec: {tlsSecretRef: {name: ""}}`, "spec.tlsSecretRef.name in body should be at least 1 chars long"),
		Entry("an unknown exposure", `spec: {exposure: {type: NodePort}}`, `supported values: "Automatic", "Route", "Ingress", "Gateway", "LoadBalancer", "None"`),
		Entry("an Ingress without a host name", `spec: {exposure: {type: Ingress}}`, "must have hostname"),
		Entry("a host name of a load balancer", `spec: {exposure: {type: LoadBalancer, hostname: api.example.org}}`, "must have hostname only for type Automatic, Route, Ingress or Gateway"),
		Entry("a host name with a port", `spec: {exposure: {type: Ingress, hostname: "api.example.org:443"}}`, "hostname"),
		Entry("a certificate of a Gateway", `spec: {exposure: {type: Gateway, hostname: api.example.org, parentRef: {name: public}, tlsSecretRef: {name: api-tls}}}`, "a Gateway has its own certificates"),
		Entry("a class of a Route", `spec: {exposure: {type: Route, ingressClassName: public}}`, "only for type Ingress"),
		Entry("a scheme of a Route", `spec: {exposure: {type: Route, scheme: HTTP}}`, "must have scheme only for type Ingress or Gateway"),
		Entry("a Gateway without a name", `spec: {exposure: {type: Gateway, hostname: api.example.org}}`, "must have parentRef for type Gateway"),
	},
	Columns: map[string]any{"Public": "https://api-openstack.apps.example.org/v2.1"},
	Status: `
endpoints:
- {interface: Internal, url: "http://api.openstack.svc:8774/v2.1"}
- {interface: Public, url: "https://api-openstack.apps.example.org/v2.1"}
`,
}

func TestAdmission(t *testing.T) { admission.Run(t) }
