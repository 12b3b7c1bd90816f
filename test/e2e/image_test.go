package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builds are the builds of the image that have a server, by the tag's suffix, with
// patterns of the header Server of their answers, and of the remark in ImageReady.
var builds = []struct{ name, suffix, server, remark string }{
	{"uwsgi", "", "^$", "^$"},
	{"apache", "-apache", "Apache/2", "^$"},
	{"kolla", "-kolla", "Apache/2", "^$"},
	{"nova", "-nova", "^$", "served by nova-api, a server for development"},
}

// restartWithin is the time from a hang to a running container: at most 120 s until the third
// probe fails, 20 s for the end, and the start.
const restartWithin = 4 * time.Minute

// keptServices are used by the later specs.
var keptServices = []string{"api-uwsgi", "api-nova", "metadata-apache"}

// serviceOf returns the name of the service of a kind on a build.
func serviceOf(kind, build string) string {
	return strings.ToLower(strings.TrimPrefix(kind, "Nova")) + "-" + build
}

// The namespace has an API and a metadata service on each build of the image.
var _ = Describe("An image", Ordered, SpecPriority(1), func() {
	var (
		identity cloud
		hung     corev1.Pod
		hungAt   time.Time
	)

	BeforeAll(func(ctx SpecContext) { identity = makeCloudOf(ctx, imageNamespace, "image") })

	It("serves API and metadata with the server that it has", func(ctx SpecContext) {
		for _, build := range builds { // one after the other: two processors run all specs
			apply(ctx, imageNamespace, fmt.Sprintf(apiAndMetadata, "-"+build.name, build.suffix))
			for kind, name := range map[string]string{"NovaAPI": serviceOf("NovaAPI", build.name), "NovaMetadata": serviceOf("NovaMetadata", build.name)} {
				awaitReady(ctx, kind, imageNamespace, name)
				Expect(conditionOf(read(ctx, kind, imageNamespace, name), "ImageReady").message).To(MatchRegexp(build.remark), name)
			}
			api, metadata := serviceURL(imageNamespace, "api-"+build.name, 8774), serviceURL(imageNamespace, "metadata-"+build.name, 8775)
			awaitAnswer(ctx, api)
			awaitAnswer(ctx, metadata)
			Expect(statusOf(ctx, api+"/v2.1/flavors", nil)).To(Equal(http.StatusUnauthorized), build.name)
			Expect(statusOf(ctx, api+"/v2.1/flavors", http.Header{"X-Auth-Token": {identity.provider.Token()}})).To(Equal(http.StatusOK), build.name)
			Expect(statusOf(ctx, metadata+"/", nil)).To(Equal(http.StatusOK), build.name)
			Expect(statusOf(ctx, metadata+"/latest/meta-data/", nil)).To(Equal(http.StatusBadRequest), "a request without a signature: "+build.name)
			Expect(serverOf(ctx, api)).To(MatchRegexp(build.server), build.name)
			for _, kind := range []string{"NovaAPI", "NovaMetadata"} {
				if name := serviceOf(kind, build.name); !slices.Contains(keptServices, name) {
					Expect(k8s.Delete(ctx, object(kind, imageNamespace, name))).To(Succeed())
				}
			}
		}
	})

	It("no longer answers when it hangs", func(ctx SpecContext) { // the last spec waits for the restart
		hung = podsOf(ctx, imageNamespace, map[string]string{"app.kubernetes.io/instance": "metadata-apache"})[0]
		signalAll(ctx, hung, syscall.SIGSTOP)
		hungAt = time.Now()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, serviceURL(imageNamespace, "metadata-apache", 8775), nil)
		Expect(err).NotTo(HaveOccurred())
		impatient := &http.Client{Timeout: 3 * time.Second, Transport: httpClient.Transport}
		_, err = impatient.Do(request)
		Expect(err).To(MatchError(ContainSubstring("Client.Timeout exceeded")))
	})

	It("answers every request that waits when its pod is deleted", func(ctx SpecContext) {
		var pods []corev1.Pod
		var requests sync.WaitGroup
		names := []string{"api-uwsgi", "api-nova"}
		for _, name := range names {
			pod := podsOf(ctx, imageNamespace, map[string]string{"app.kubernetes.io/instance": name})[0]
			pods = append(pods, pod)
			signalAll(ctx, pod, syscall.SIGSTOP)
			for range 20 {
				requests.Go(func() {
					defer GinkgoRecover()
					Expect(statusOf(ctx, "http://"+pod.Status.PodIP+":8774", nil)).To(Equal(http.StatusOK), name)
				})
			}
			Expect(k8s.Delete(ctx, &pod)).To(Succeed())
		}
		for _, pod := range pods { // ten seconds after its deletion, a pod is stopped unless a request waits
			Consistently(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(&pod), &corev1.Pod{}) }).
				WithContext(ctx).WithTimeout(8 * time.Second).Should(Succeed())
		}
		for _, pod := range pods {
			signalAll(ctx, pod, syscall.SIGCONT)
		}
		requests.Wait()
		for _, pod := range pods {
			Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(&pod), &corev1.Pod{}) }).
				WithContext(ctx).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}
		for _, name := range names {
			awaitAnswer(ctx, serviceURL(imageNamespace, name, 8774))
		}
	})

	It("is named by a condition if it lacks a server, and the pods keep their image", func(ctx SpecContext) {
		before := uidsOf(ctx, imageNamespace)
		setImage(ctx, "api-nova", openStack+"-none")
		awaitFalse(ctx, object("NovaAPI", imageNamespace, "api-nova"), "ImageReady", "ImageIncomplete",
			"image "+openStack+"-none lacks a WSGI server (uWSGI with Python, or Apache with mod_wsgi)", "spec.containerImage")
		pods := podsOf(ctx, imageNamespace, map[string]string{"app.kubernetes.io/instance": "api-nova"})
		Expect(pods).To(HaveLen(1))
		Expect(before).To(HaveKeyWithValue("Pod/"+pods[0].Name, string(pods[0].UID)))
		Expect(statusOf(ctx, serviceURL(imageNamespace, "api-nova", 8774), nil)).To(Equal(http.StatusOK))
		setImage(ctx, "api-nova", openStack)
		awaitReady(ctx, "NovaAPI", imageNamespace, "api-nova")
		Expect(conditionOf(read(ctx, "NovaAPI", imageNamespace, "api-nova"), "ImageReady").message).To(BeEmpty())
	})

	It("is restarted after it has hung", func(ctx SpecContext) {
		restarts := func() int32 {
			var pod corev1.Pod
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(&hung), &pod)).To(Succeed())
			return pod.Status.ContainerStatuses[0].RestartCount
		}
		Eventually(restarts).WithContext(ctx).WithTimeout(max(restartWithin-time.Since(hungAt), time.Second)).Should(BeEquivalentTo(1))
		awaitStatus(ctx, serviceURL(imageNamespace, "metadata-apache", 8775), Equal(http.StatusOK))
		for _, pod := range podsOf(ctx, imageNamespace, nil) {
			for _, status := range pod.Status.ContainerStatuses {
				if pod.UID != hung.UID {
					Expect(status.RestartCount).To(BeZero(), "the liveness probe restarts only the pod that hangs: "+pod.Name)
				}
			}
		}
	}, SpecTimeout(15*time.Minute))
})

// makeCloudOf loads the builds of the image, and makes a namespace with what an API and a
// metadata service need: a superconductor, which creates the schemas of its databases at the
// demo's MariaDB, and the Secrets of accounts: at Keystone, an application credential. It returns the demo's cloud.
func makeCloudOf(ctx context.Context, namespace, user string) cloud {
	GinkgoHelper()
	loadImages(ctx, "variants")
	makeNamespace(ctx, namespace)
	handOver(ctx, namespace, sharedOperators)
	makeAccounts(ctx, user, user)
	execute(ctx, demoNamespace, "GRANT ALL PRIVILEGES ON "+user+"_api.* TO '"+user+"'@'%'", "GRANT ALL PRIVILEGES ON "+user+"_cell0.* TO '"+user+"'@'%'")
	identity := signIn(ctx, demoNamespace)
	identity.makeUser(ctx, user, "created by the test")
	DeferCleanup(func(ctx SpecContext) { identity.removeUser(ctx, user) })
	server := func(name string) string { return name + "." + demoNamespace + ".svc.cluster.local" }
	database := func(name string) map[string]string {
		return map[string]string{"user": user, "password": canaryDatabase, "hostname": server("mariadb"), "database": name}
	}
	setSecret(ctx, namespace, "api-database", database(user+"_api"))
	setSecret(ctx, namespace, "cell0-database", database(user+"_cell0"))
	setSecret(ctx, namespace, "bus", map[string]string{"user": user, "password": canaryBus, "hostname": server("rabbitmq")})
	setSecret(ctx, namespace, "nova-identity", map[string]string{
		"applicationCredentialID": identity.makeCredential(ctx, user), "applicationCredentialSecret": canaryIdentity,
		"authURL": "http://" + server("keystone") + ":5000/v3",
	})
	setSecret(ctx, namespace, "nova-metadata", map[string]string{"sharedSecret": canaryShared})
	apply(ctx, namespace, superconductor)
	awaitReady(ctx, "NovaConductor", namespace, "super")
	return identity
}

// loadImages builds the variants of the demo's image that an option of tools/images chooses, unless
// they exist, and loads them into the cluster. Specs in parallel wait for one build.
func loadImages(ctx context.Context, option string) {
	GinkgoHelper()
	program := func(name string) string { return repository(".demo", "bin", name) }
	archive := repository(".demo", "images", "openstack-"+option+".tar")
	_, err := run(ctx, "", "flock", archive+".lock", program("images"), "openstack", "--release", release, "--"+option, "--output", archive)
	Expect(err).NotTo(HaveOccurred())
	_, err = run(ctx, "", program("cluster"), "--dir", stateFolder(), "load", archive)
	Expect(err).NotTo(HaveOccurred())
}

func serviceURL(namespace, name string, port int) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", name, namespace, port)
}

// awaitAnswer waits until the node forwards connections to the pods of a new Service: kube-proxy
// learns of a ready pod after its object is Ready.
func awaitAnswer(ctx context.Context, url string) {
	GinkgoHelper()
	awaitStatus(ctx, url, BeNumerically(">", 0))
}

// awaitStatus waits for an answer with a status.
func awaitStatus(ctx context.Context, url string, status types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := httpClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(status)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// serverOf returns the header Server of an answer.
func serverOf(ctx context.Context, url string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := httpClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.Header.Get("Server")
}

func setImage(ctx context.Context, name, image string) {
	GinkgoHelper()
	patchAPI(ctx, imageNamespace, name, fmt.Sprintf(`{"containerImage": %q}`, image))
}

// signalAll sends a signal to every process of the pod's container. This machine is the node. A
// process of the probe or of the pod's end may have ended since it was listed.
func signalAll(ctx context.Context, pod corev1.Pod, signal syscall.Signal) {
	GinkgoHelper()
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	out, err := run(ctx, "", "ctr", "tasks", "ps", id)
	Expect(err).NotTo(HaveOccurred())
	signalled := 0
	for line := range strings.Lines(out) {
		if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil { // the first line is a header
			Expect(syscall.Kill(pid, signal)).To(Or(Succeed(), MatchError(syscall.ESRCH)))
			signalled++
		}
	}
	Expect(signalled).To(BeNumerically(">", 1), out)
}
