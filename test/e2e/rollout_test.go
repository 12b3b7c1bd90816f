package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const rolloutNamespace = "e2e-rollout" // an API whose pods are replaced under load

var _ = Describe("An API", Ordered, SpecPriority(2), func() {
	const api = "api-uwsgi"
	var identity cloud

	BeforeAll(func(ctx SpecContext) {
		identity = makeCloudOf(ctx, rolloutNamespace, "rollout")
		apply(ctx, rolloutNamespace, fmt.Sprintf(lonelyAPI, "-uwsgi", ""))
	})

	It("is rolled out ten times without a failed request", func(ctx SpecContext) {
		awaitReady(ctx, "NovaAPI", rolloutNamespace, api)
		awaitAnswer(ctx, serviceURL(rolloutNamespace, api, 8774))
		requests := startLoad(ctx, serviceURL(rolloutNamespace, api, 8774), identity.provider.Token(), 10)

		By("a value with which no pod starts") // one worker: when several fail, uWSGI interrupts all but the first
		patchAPI(ctx, rolloutNamespace, api, `{"customServiceConfig": "[DEFAULT]\nservice_down_time = soon\n"}`)
		awaitWithin(ctx, patience, "NovaAPI", rolloutNamespace, api, func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Ready").message).To(And(ContainSubstring("service_down_time"), ContainSubstring("'soon'")))
		})
		patchAPI(ctx, rolloutNamespace, api, `{"customServiceConfig": "", "replicas": 2, "workers": 2}`)
		awaitRolledOut(ctx, api)

		steps := []struct{ name, change string }{
			{"a snippet", `{"customServiceConfig": "[DEFAULT]\ndebug = false\n"}`},
			{"scale up", `{"replicas": 3}`},
			{"Apache", `{"containerImage": "` + openStack + `-apache"}`},
			{"scale down", `{"replicas": 2}`},
			{"a deleted pod", ""},
			{"another snippet", `{"customServiceConfig": "[DEFAULT]\nuse_stderr = true\n"}`},
			{"kolla", `{"containerImage": "` + openStack + `-kolla"}`},
			{"an evicted pod", ""},
			{"uWSGI", `{"containerImage": "` + openStack + `"}`},
			{"no snippet", `{"customServiceConfig": ""}`},
		}
		for _, step := range steps {
			By(step.name)
			var slow <-chan string
			switch step.name {
			case "a deleted pod":
				pod := runningPods(ctx, api)[0]
				slow = startSlowRequest(ctx, pod.Status.PodIP, identity.provider.Token())
				Expect(k8s.Delete(ctx, &pod)).To(Succeed())
			case "an evicted pod": // as a drained node evicts it
				pod := runningPods(ctx, api)[0]
				slow = startSlowRequest(ctx, pod.Status.PodIP, identity.provider.Token())
				Expect(typed.CoreV1().Pods(rolloutNamespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})).To(Succeed())
			default:
				patchAPI(ctx, rolloutNamespace, api, step.change)
			}
			awaitRolledOut(ctx, api)
			if slow != nil {
				Eventually(ctx, slow).WithTimeout(time.Minute).Should(Receive(HavePrefix("400 ")))
			}
		}
		Eventually(func() int { // the last pods answer for ten seconds after their deletion
			return len(podsOf(ctx, rolloutNamespace, map[string]string{"app.kubernetes.io/instance": api}))
		}).WithContext(ctx).Should(Equal(2))
		answered, failures := requests.Stop()
		AddReportEntry("requests", answered)
		Expect(failures).To(BeEmpty())
		Expect(answered).To(BeNumerically(">", 1000))
	}, SpecTimeout(25*time.Minute))
})

// startSlowRequest sends a request to a pod. Its body, which Nova refuses with 400, takes twice as long
// as a pod answers after its deletion, a byte a second: uWSGI gives up after four without one. The
// channel receives the status of the answer, or an error.
func startSlowRequest(ctx context.Context, address, token string) <-chan string {
	GinkgoHelper()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(address, "8774"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(connection.Close)
	const seconds = 20
	_, err = fmt.Fprintf(connection, "POST /v2.1/os-keypairs HTTP/1.1\r\nHost: %s:8774\r\nX-Auth-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		address, token, seconds+len("{}"))
	Expect(err).NotTo(HaveOccurred())
	answered := make(chan string, 1)
	go func() {
		answered <- func() string {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for range seconds {
				<-ticker.C
				if _, err := io.WriteString(connection, " "); err != nil {
					return err.Error()
				}
			}
			_, _ = io.WriteString(connection, "{}") // the answer tells of an error
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				return err.Error()
			}
			defer answer.Body.Close()
			return answer.Status
		}()
	}()
	return answered
}

// patchAPI changes the spec of a NovaAPI.
func patchAPI(ctx context.Context, namespace, name, spec string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object("NovaAPI", namespace, name), client.RawPatch(types.MergePatchType, []byte(`{"spec": `+spec+`}`)), client.FieldOwner(tester))).To(Succeed())
}

// runningPods returns the pods of a service that are not being deleted.
func runningPods(ctx context.Context, instance string) []corev1.Pod {
	GinkgoHelper()
	var running []corev1.Pod
	for _, pod := range podsOf(ctx, rolloutNamespace, map[string]string{"app.kubernetes.io/instance": instance}) {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}
	return running
}

// awaitRolledOut waits until a NovaAPI is Ready and every pod that is not being deleted is
// ready: after the deletion of a pod, Ready becomes False only some time later.
func awaitRolledOut(ctx context.Context, name string) {
	GinkgoHelper()
	awaitWithin(ctx, patience, "NovaAPI", rolloutNamespace, name, func(g Gomega, o *unstructured.Unstructured) {
		g.Expect(isReady(o)).To(BeTrue(), "%s", conditionOf(o, "Ready"))
		wanted, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		running := runningPods(ctx, name)
		g.Expect(running).To(HaveLen(int(wanted)))
		for _, pod := range running {
			g.Expect(pod.Status.ContainerStatuses).To(HaveEach(HaveField("Ready", true)), pod.Name)
		}
	})
}
