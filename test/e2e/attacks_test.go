package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The attackers may create namespaces, or edit a namespace.
var _ = Describe("Attacks", Serial, Ordered, func() {
	// squatted is a namespace that any creator of namespaces may own. In the search list
	// of a pod, svc.cluster.local precedes cluster.local: for the name
	// mariadb.openstack.svc the resolver first tries mariadb.openstack.svc.svc.cluster.local,
	// which is the pod mariadb of Service openstack in namespace svc.
	const squatted = "svc"

	AfterAll(func(ctx SpecContext) {
		kubectl(ctx, "delete", "namespace", squatted, "--ignore-not-found")
	})

	It("of the owner of a namespace named svc are refused", func(ctx SpecContext) {
		makeNamespace(ctx, squatted)
		apply(ctx, squatted, fmt.Sprintf(rogue, openStack))
		var rogueIP string
		Eventually(func(g Gomega) {
			var pod corev1.Pod
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: squatted, Name: "mariadb"}, &pod)).To(Succeed())
			g.Expect(pod.Status.PodIP).NotTo(BeEmpty())
			rogueIP = pod.Status.PodIP
		}).WithContext(ctx).Should(Succeed(), func() string { return explain(squatted) })
		defaultPod := "deployment/openstackclient" // a pod with Kubernetes' default DNS settings
		Eventually(func() string { return resolved(ctx, defaultPod, "mariadb.openstack.svc") }).WithContext(ctx).Should(Equal(rogueIP), "the attack must work on an incomplete name")

		var service corev1.Service
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: demoNamespace, Name: "mariadb"}, &service)).To(Succeed())
		hosts := databaseHosts(ctx)
		Expect(hosts).NotTo(BeEmpty(), "no connection Secret contains the host of a MariaDB")
		for _, host := range hosts {
			for _, pod := range []string{"demo-superconductor-0", defaultPod} {
				Expect(resolved(ctx, pod, host)).To(Equal(service.Spec.ClusterIP), "%s in %s", host, pod)
			}
		}
	})

	It("of the owner of a namespace named org are refused", func(ctx SpecContext) {
		options := kubectl(ctx, "exec", "--namespace="+demoNamespace, "demo-superconductor-0", "--", "cat", "/etc/resolv.conf")
		Expect(options).To(ContainSubstring("ndots:2"), "db.example.org must be looked up without a search domain")
		for _, operator := range operators(ctx, demoOperators...) {
			Expect(operator.Spec.Template.Spec.DNSConfig).NotTo(BeNil(), operator.Name)
			Expect(operator.Spec.Template.Spec.DNSConfig.Options).To(ContainElement(corev1.PodDNSConfigOption{Name: "ndots", Value: new("2")}), operator.Name)
		}
	})

	// No component of this cluster enforces NetworkPolicies.
	It("on the network are limited by NetworkPolicies", func(ctx SpecContext) {
		for _, operator := range operators(ctx, demoOperators...) {
			policies := policiesOf(ctx, operator.Namespace, operator.Spec.Template.Labels)
			Expect(policies).To(HaveLen(1), operator.Name)
			Expect(policies[0].PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress), operator.Name)
			Expect(policies[0].Ingress).To(HaveLen(1), operator.Name)
			Expect(policies[0].Ingress[0].From).NotTo(BeEmpty(), "%s: the sources of requests for metrics must be limited", operator.Name)
		}
		open := map[string][]string{}
		for _, pod := range podsOf(ctx, demoNamespace, map[string]string{"app.kubernetes.io/part-of": "demo"}) {
			if _, isJobs := pod.Labels["batch.kubernetes.io/job-name"]; isJobs {
				continue
			}
			policies := policiesOf(ctx, demoNamespace, pod.Labels)
			Expect(policies).To(HaveLen(1), pod.Name)
			name := pod.Labels["app.kubernetes.io/name"]
			open[name] = nil
			for _, rule := range policies[0].Ingress {
				for _, port := range rule.Ports {
					open[name] = append(open[name], port.Port.String())
				}
			}
		}
		if proxy, shown := open["nova-novncproxy"]; shown { // while consoleSpecs run
			Expect(proxy).To(Equal([]string{"novnc"}))
			delete(open, "nova-novncproxy")
		}
		Expect(open).To(Equal(map[string][]string{
			"nova-api": {"api"}, "nova-metadata": {"metadata"}, "nova-conductor": nil, "nova-scheduler": nil, "nova-compute": nil,
		}))
	})

	stolenTokenSpecs()
})

// policiesOf returns the NetworkPolicies that select a pod by its labels.
func policiesOf(ctx context.Context, namespace string, of map[string]string) []networkingv1.NetworkPolicySpec {
	GinkgoHelper()
	var policies networkingv1.NetworkPolicyList
	Expect(k8s.List(ctx, &policies, client.InNamespace(namespace))).To(Succeed())
	var found []networkingv1.NetworkPolicySpec
	for _, policy := range policies.Items {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		Expect(err).NotTo(HaveOccurred())
		if selector.Matches(labels.Set(of)) {
			found = append(found, policy.Spec)
		}
	}
	return found
}

const rogue = `
apiVersion: v1
kind: Service
metadata: {name: openstack}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: rogue}}
---
apiVersion: v1
kind: Pod
metadata: {name: mariadb, labels: {app: rogue}}
spec:
  hostname: mariadb
  subdomain: openstack
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: %s
    command: [sleep, infinity]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// resolved returns the address to which a pod resolves a name.
func resolved(ctx context.Context, pod, name string) string {
	GinkgoHelper()
	out, err := execIn(ctx, demoNamespace, pod, "python3", "-c", "import socket, sys; print(socket.gethostbyname(sys.argv[1]))", name)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out)
}

// databaseHosts returns the MariaDB hosts in the connection Secrets of the demo's Nova.
func databaseHosts(ctx context.Context) []string {
	GinkgoHelper()
	var secrets corev1.SecretList
	Expect(k8s.List(ctx, &secrets, client.InNamespace(demoNamespace), client.HasLabels{"asterism.dev/owner-uid"})).To(Succeed())
	var hosts []string
	for _, secret := range secrets.Items {
		controller := metav1.GetControllerOf(&secret)
		if host := string(secret.Data["hostname"]); controller != nil && controller.Kind == "Nova" && strings.HasPrefix(host, "mariadb.") {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
