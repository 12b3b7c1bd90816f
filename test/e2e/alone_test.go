package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// randomUID is a uid from a range that OpenShift would assign to a namespace.
const randomUID = 1000650000

// randomUser sets a uid without an account in the image for every pod of a namespace, as
// OpenShift does.
const randomUser = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s, labels: {%[3]s: "true"}}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: %[2]d, fsGroup: %[2]d}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s, labels: {%[3]s: "true"}}
spec: {policyName: %[1]s}
`

// The namespace contains services without a Nova. The test creates their Secrets, with
// three keys each, and their accounts.
var _ = Describe("A service alone", Ordered, func() {
	const user = "alone"
	var (
		server   = func(name string) string { return name + "." + demoNamespace + ".svc.cluster.local" }
		identity cloud
	)
	name := func(resource string) types.NamespacedName {
		return types.NamespacedName{Namespace: aloneNamespace, Name: resource}
	}

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, aloneNamespace)
		handOver(ctx, aloneNamespace, sharedOperators)
		apply(ctx, aloneNamespace, fmt.Sprintf(randomUser, aloneNamespace, randomUID, testNamespaceLabel))
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", aloneNamespace)
		})
		makeAccounts(ctx, user, "nova")
		identity = signIn(ctx, demoNamespace)
		identity.makeUser(ctx, user, "created by the test")
		DeferCleanup(func(ctx SpecContext) { identity.removeUser(ctx, user) })
	})

	It("names a missing Secret, a missing key and an invalid value", func(ctx SpecContext) {
		apply(ctx, aloneNamespace, superconductor+"---"+lonelyScheduler+"---"+fmt.Sprintf(apiAndMetadata, "", ""))
		conductor := object("NovaConductor", aloneNamespace, "super")
		awaitFalse(ctx, conductor, "InputsReady", "Waiting", "Secret cell0-database")

		setSecret(ctx, aloneNamespace, "cell0-database", map[string]string{"user": user, "password": canaryDatabase})
		awaitFalse(ctx, conductor, "InputsReady", "Waiting", "Secret cell0-database", "hostname")

		setSecret(ctx, aloneNamespace, "cell0-database", map[string]string{"user": user, "password": canaryDatabase, "hostname": server("mariadb")})
		setSecret(ctx, aloneNamespace, "api-database", map[string]string{"user": user, "password": canaryDatabase, "hostname": server("mariadb")})
		setSecret(ctx, aloneNamespace, "bus", map[string]string{"user": user, "password": "with/slash", "hostname": server("rabbitmq")})
		setSecret(ctx, aloneNamespace, "nova-identity", map[string]string{"user": user, "password": canaryIdentity, "authURL": "http://" + server("keystone") + ":5000/v3"})
		setSecret(ctx, aloneNamespace, "nova-metadata", map[string]string{"sharedSecret": canaryShared})
		awaitFalse(ctx, conductor, "Ready", "Waiting", "Secret bus", "password", "slash")
	})

	It("does not change a foreign object", func(ctx SpecContext) {
		apply(ctx, aloneNamespace, foreignObjects)
		uids := uidsOf(ctx, aloneNamespace)
		scheduler := object("NovaScheduler", aloneNamespace, "scheduler")
		setSecret(ctx, aloneNamespace, "bus", map[string]string{"user": user, "password": canaryBus, "hostname": server("rabbitmq")})
		awaitFalse(ctx, scheduler, "ConfigReady", "Conflict", "ConfigMap", "scheduler-scripts")

		var scripts corev1.ConfigMap
		Expect(k8s.Get(ctx, name("scheduler-scripts"), &scripts)).To(Succeed())
		Expect(scripts.Data).To(Equal(map[string]string{"owner": "foreign"}))
		Expect(k8s.Delete(ctx, &scripts)).To(Succeed())
		awaitFalse(ctx, scheduler, "WorkloadReady", "Conflict", "StatefulSet scheduler")

		Expect(uidsOf(ctx, aloneNamespace)).To(HaveKeyWithValue("StatefulSet/scheduler", uids["StatefulSet/scheduler"]))
		kubectl(ctx, "delete", "statefulset", "scheduler", "--namespace="+aloneNamespace)
	})

	It("reports why its schema failed, without the password, and recovers", func(ctx SpecContext) {
		conductor := object("NovaConductor", aloneNamespace, "super")
		awaitFalse(ctx, conductor, "SchemaReady", "JobFailed", "Access denied for user 'alone'")
		Expect(conditionOf(read(ctx, "NovaConductor", aloneNamespace, "super"), "SchemaReady").message).NotTo(ContainSubstring("c4n4ry"))
		execute(ctx, demoNamespace, "GRANT ALL PRIVILEGES ON nova_api.* TO 'alone'@'%'", "GRANT ALL PRIVILEGES ON nova_cell0.* TO 'alone'@'%'")
		awaitReady(ctx, "NovaConductor", aloneNamespace, "super")
	})

	It("is Ready with a uid without an account in the image", func(ctx SpecContext) {
		for kind, instance := range map[string]string{"NovaScheduler": "scheduler", "NovaAPI": "api", "NovaMetadata": "metadata"} {
			awaitReady(ctx, kind, aloneNamespace, instance)
		}
		for _, pod := range []string{"super-0", "scheduler-0", "deployment/api", "deployment/metadata"} {
			out, err := execIn(ctx, aloneNamespace, pod, "id", "-u")
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.TrimSpace(out)).To(Equal(fmt.Sprint(randomUID)), pod)
		}
	})

	It("answers requests", func(ctx SpecContext) {
		api, metadata := "http://api."+aloneNamespace+".svc.cluster.local:8774", "http://metadata."+aloneNamespace+".svc.cluster.local:8775"
		Expect(statusOf(ctx, metadata+"/", nil)).To(Equal(http.StatusOK))
		Expect(statusOf(ctx, metadata+"/latest/meta-data/", nil)).To(Equal(http.StatusBadRequest), "a request without a signature")
		Expect(statusOf(ctx, api+"/v2.1/flavors", nil)).To(Equal(http.StatusUnauthorized))
		Expect(statusOf(ctx, api+"/v2.1/flavors", http.Header{"X-Auth-Token": {identity.provider.Token()}})).To(Equal(http.StatusOK))
		Eventually(func() []string { // services report every ten seconds
			return query(ctx, demoNamespace, "SELECT host FROM nova_cell0.services WHERE deleted = 0 AND report_count > 0")
		}).WithContext(ctx).Should(ContainElements("super-0", "scheduler-0"))
	})

	expose := func(ctx context.Context, kind, instance, exposure string) {
		GinkgoHelper()
		kubectl(ctx, "patch", kind, instance, "--namespace="+aloneNamespace, "--type=merge", "--patch="+`{"spec": {"exposure": `+exposure+`}}`)
	}
	expectPublic := func(ctx context.Context, kind, instance, url string) {
		GinkgoHelper()
		awaitReady(ctx, kind, aloneNamespace, instance)
		Expect(kubectl(ctx, "get", kind, instance, "--namespace="+aloneNamespace, `--output=jsonpath={.status.endpoints[?(@.interface=="Public")].url}`)).To(Equal(url))
	}
	publish := func(ctx context.Context, object string) { // sets the address, as a controller would
		GinkgoHelper()
		Eventually(func() error {
			_, err := run(ctx, "", "kubectl", "patch", object, "--namespace="+aloneNamespace, "--subresource=status", "--type=merge",
				`--patch={"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}`)
			return err
		}).WithContext(ctx).Should(Succeed())
	}

	It("publishes the address of an Ingress and of a load balancer", func(ctx SpecContext) {
		expose(ctx, "NovaAPI", "api", `{"type": "Ingress", "hostname": "api.example.org", "scheme": "HTTPS"}`)
		awaitFalse(ctx, object("NovaAPI", aloneNamespace, "api"), "EndpointReady", "Progressing", "Ingress api has no address yet")
		publish(ctx, "ingress/api")
		expectPublic(ctx, "NovaAPI", "api", "https://api.example.org/v2.1")
		expose(ctx, "NovaAPI", "api", `{"type": "LoadBalancer", "hostname": null, "scheme": null}`)
		publish(ctx, "service/api-public")
		expectPublic(ctx, "NovaAPI", "api", "http://192.0.2.1:8774/v2.1")
		expose(ctx, "NovaAPI", "api", `{"type": "Automatic"}`)
		expectPublic(ctx, "NovaAPI", "api", "http://api."+aloneNamespace+".svc.cluster.local:8774/v2.1")
	})

	It("publishes the address of a metadata service while an Ingress exposes it", func(ctx SpecContext) {
		expectPublic(ctx, "NovaMetadata", "metadata", "")
		expose(ctx, "NovaMetadata", "metadata", `{"type": "Ingress", "hostname": "metadata.example.org"}`)
		publish(ctx, "ingress/metadata")
		expectPublic(ctx, "NovaMetadata", "metadata", "http://metadata.example.org")
		expose(ctx, "NovaMetadata", "metadata", `{"type": "None", "hostname": null}`)
		expectPublic(ctx, "NovaMetadata", "metadata", "")
		Eventually(func() string { return kubectl(ctx, "get", "ingress", "--output=name", "--namespace="+aloneNamespace) }).WithContext(ctx).Should(BeEmpty())
	})

	It("scales by its own scale subresource", func(ctx SpecContext) {
		kubectl(ctx, "scale", "novascheduler/scheduler", "--namespace="+aloneNamespace, "--replicas=2")
		awaitReady(ctx, "NovaScheduler", aloneNamespace, "scheduler")
		Expect(podsOf(ctx, aloneNamespace, map[string]string{"app.kubernetes.io/instance": "scheduler"})).To(HaveLen(2))
		Expect(uidsOf(ctx, aloneNamespace)).To(HaveKey("PodDisruptionBudget/scheduler"))
	})

	It("reports why its pods cannot start", func(ctx SpecContext) {
		image := func(name string) {
			GinkgoHelper()
			kubectl(ctx, "patch", "novascheduler/scheduler", "--namespace="+aloneNamespace, "--type=merge",
				"--patch="+fmt.Sprintf(`{"spec": {"containerImage": %q}}`, name))
		}
		for unusable, reason := range map[string]string{
			"registry.invalid/nova:none": "ImagePull", // ErrImagePull, and then ImagePullBackOff
			"registry.invalid/NOVA":      "InvalidImageName",
		} {
			image(unusable)
			Eventually(func() []string { // once the previous pod has ended
				return waitingReasons(podsOf(ctx, aloneNamespace, map[string]string{"app.kubernetes.io/instance": "scheduler"}))
			}).WithContext(ctx).Should(ContainElement(ContainSubstring(reason)))
			awaitWithin(ctx, time.Minute, "NovaScheduler", aloneNamespace, "scheduler", func(g Gomega, o *unstructured.Unstructured) {
				g.Expect(conditionOf(o, "Ready").message).To(And(ContainSubstring("pod scheduler-"), ContainSubstring(reason)))
			})
		}
		image(openStack)
		awaitReady(ctx, "NovaScheduler", aloneNamespace, "scheduler")
	})

	It("is deleted with everything that it created, except the key of hashes of the namespace", func(ctx SpecContext) {
		foreground := metav1.DeletePropagationForeground
		for kind, instance := range map[string]string{"NovaConductor": "super", "NovaScheduler": "scheduler", "NovaAPI": "api", "NovaMetadata": "metadata"} {
			Expect(k8s.Delete(ctx, object(kind, aloneNamespace, instance), &client.DeleteOptions{PropagationPolicy: &foreground})).To(Succeed())
		}
		Eventually(func() map[string]string {
			left := uidsOf(ctx, aloneNamespace)
			for _, given := range []string{"api-database", "cell0-database", "bus", "nova-identity", "nova-metadata", "asterism-hash-key"} {
				Expect(left).To(HaveKey("Secret/" + given))
				delete(left, "Secret/"+given)
			}
			delete(left, "ConfigMap/kube-root-ca.crt")
			return left
		}).WithContext(ctx).Should(BeEmpty())
	})
})

// waitingReasons returns the reasons of waiting containers, init containers included.
func waitingReasons(pods []corev1.Pod) []string {
	var reasons []string
	for _, pod := range pods {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if status.State.Waiting != nil {
				reasons = append(reasons, status.State.Waiting.Reason)
			}
		}
	}
	return reasons
}

// makeAccounts creates databases, for the prefix nova with the default names, and an account
// without rights on them, which simulates a mistake of an administrator.
func makeAccounts(ctx context.Context, user, prefix string) {
	GinkgoHelper()
	drop := []string{"DROP DATABASE IF EXISTS " + prefix + "_api", "DROP DATABASE IF EXISTS " + prefix + "_cell0", "DROP USER IF EXISTS '" + user + "'@'%'"}
	execute(ctx, demoNamespace, drop...)
	execute(ctx, demoNamespace, "CREATE DATABASE "+prefix+"_api CHARACTER SET utf8mb3", "CREATE DATABASE "+prefix+"_cell0 CHARACTER SET utf8mb3",
		"CREATE USER '"+user+"'@'%' IDENTIFIED BY "+quoted(canaryDatabase))
	makeBusUser(ctx, demoNamespace, "/", user, canaryBus)
	DeferCleanup(func(ctx SpecContext) {
		execute(ctx, demoNamespace, drop...)
		Expect(rabbit(ctx, demoNamespace, http.MethodDelete, "users/"+user, nil, nil)).To(Equal(http.StatusNoContent))
	})
}

// quoted returns a string literal of SQL.
func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

const foreignObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler-scripts}
data: {owner: foreign}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: scheduler}
spec:
  replicas: 0
  serviceName: foreign
  selector: {matchLabels: {owner: foreign}}
  template:
    metadata: {labels: {owner: foreign}}
    spec: {containers: [{name: foreign, image: asterism.dev/demo/openstack:trixie}]}
`

// superconductor creates the schema of the API database and of cell0.
const superconductor = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaConductor
metadata: {name: super}
spec:
  role: Super
  containerImage: asterism.dev/demo/openstack:trixie
  apiDatabaseSecretRef: {name: api-database}
  databaseSecretRef: {name: cell0-database}
  messageBusSecretRef: {name: bus}
`

const lonelyScheduler = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaScheduler
metadata: {name: scheduler}
spec:
  containerImage: asterism.dev/demo/openstack:trixie
  apiDatabaseSecretRef: {name: api-database}
  cell0DatabaseSecretRef: {name: cell0-database}
  messageBusSecretRef: {name: bus}
  identitySecretRef: {name: nova-identity}
`

// lonelyAPI and apiAndMetadata need a suffix of the names, and one of the image's tag.
const lonelyAPI = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaAPI
metadata: {name: api%[1]s}
spec:
  containerImage: asterism.dev/demo/openstack:trixie%[2]s
  workers: 1
  apiDatabaseSecretRef: {name: api-database}
  cell0DatabaseSecretRef: {name: cell0-database}
  messageBusSecretRef: {name: bus}
  identitySecretRef: {name: nova-identity}
`

const apiAndMetadata = lonelyAPI + `
---
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaMetadata
metadata: {name: metadata%[1]s}
spec:
  containerImage: asterism.dev/demo/openstack:trixie%[2]s
  workers: 1
  apiDatabaseSecretRef: {name: api-database}
  cell0DatabaseSecretRef: {name: cell0-database}
  messageBusSecretRef: {name: bus}
  metadataSecretRef: {name: nova-metadata}
`
