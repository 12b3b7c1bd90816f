package e2e

import (
	"context"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	crashNamespace = "e2e-crash"
	crashOperators = "e2e-crash-operators"
	// crashes is the number of kills of operators, each after one of the first crashWithin
	// writes of a deployment.
	crashes     = 12
	crashWithin = 80
)

// crashControlPlane has the same names as the demo's, for the comparison.
const crashControlPlane = `
apiVersion: asterism.dev/v1alpha1
kind: ControlPlane
metadata: {name: demo}
spec:
  containerImage: asterism.dev/demo/openstack:trixie
  database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}
  messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq-default-user}}
  identity: {adminSecretRef: {name: keystone-admin}}
  nova: {api: {workers: 1}, metadata: {workers: 1}, cells: [{name: cell1, computes: [{name: fake, driver: Fake}]}]}
`

// Operators are killed while they deploy. Then the namespace is deleted.
//
// The longest containers begin first, so that none of them is left for one processor.
var _ = Describe("A deployment", Ordered, SpecPriority(4), func() {
	var began int64

	BeforeAll(func(ctx SpecContext) {
		deployInfrastructure(ctx, crashNamespace)
		deployOperators(ctx, crashOperators)
		handOver(ctx, crashNamespace, crashOperators)
		awaitInfrastructure(ctx, crashNamespace)
		addRegion(ctx, crashNamespace, "placement")
	})

	It("becomes Ready although its operators are killed meanwhile", func(ctx SpecContext) {
		points := rand.New(rand.NewSource(GinkgoRandomSeed())).Perm(crashWithin)[:crashes] //nolint:gosec // repeatable, by Ginkgo's seed
		slices.Sort(points)
		began = auditNow()
		apply(ctx, crashNamespace, crashControlPlane)
		killed := killAfter(ctx, began, points)
		AddReportEntry("killed", killed)
		awaitReady(ctx, "ControlPlane", crashNamespace, "demo")
		Expect(killed).To(HaveLen(crashes))
	}, SpecTimeout(12*time.Minute))

	It("has created the same objects as a deployment without crashes", func(ctx SpecContext) {
		// Another spec deletes objects of the demo at the same time, which are recreated.
		Eventually(func(g Gomega) {
			g.Expect(namesOf(ctx, crashNamespace)).To(Equal(namesOf(ctx, demoNamespace)))
		}).WithContext(ctx).Should(Succeed())
		Expect(query(ctx, crashNamespace, `SELECT User FROM mysql.user WHERE User LIKE 'demo\_%'`)).To(HaveLen(3))
		Expect(rabbitNames(ctx, crashNamespace, "users")).To(HaveLen(3), "the administrator, and one for each vhost")
	})

	It("has created each Job and each password once", func() {
		created, aborted := map[string]int{}, map[string]bool{}
		for _, r := range auditSince(began) {
			if r.ObjectRef.Namespace != crashNamespace || !r.isWrite() || r.ObjectRef.Subresource != "" {
				continue
			}
			name, isCreation := "", false
			switch {
			case r.ObjectRef.Resource == "jobs":
				name, isCreation = "Job "+suffix.ReplaceAllString(r.ObjectRef.Name, ""), r.creates()
			case r.ObjectRef.Resource == "secrets" && strings.HasSuffix(r.ObjectRef.Name, "-credentials"):
				name, isCreation = "Secret "+r.ObjectRef.Name, r.Response.Code < 300
			default:
				continue
			}
			if isCreation {
				created[name]++
			} else if r.isAborted() {
				aborted[name] = true
			}
		}
		for name := range aborted { // created by the aborted request, or by the next one
			created[name] = max(created[name], 1)
		}
		Expect(created).To(Equal(map[string]int{
			"Job demo-api-img": 1, "Job demo-metadata-img": 1,
			"Job demo-superconductor-db": 1, "Job demo-cell1-conductor-db": 1, "Job demo-cell0-map": 1, "Job demo-cell1-map": 1,
			"Job demo-cell0-release": 1, "Job demo-cell1-discover": 1,
			"Secret demo-credentials": 1, "Secret demo-cell1-credentials": 1,
		}))
	})

	cellSpecs(crashNamespace)

	It("is deleted with its namespace and its MariaDB, although its operators' RoleBindings are deleted first", func(ctx SpecContext) {
		kubectl(ctx, "delete", "rolebindings", "--all", "--wait=false", "--namespace="+crashNamespace)
		Expect(k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crashNamespace}})).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Name: crashNamespace}, &corev1.Namespace{}))
		}).WithContext(ctx).WithTimeout(5*time.Minute).WithPolling(time.Second).Should(BeTrue(), func() string { return explain(crashNamespace) })
		Expect(leftBehind(ctx, crashOperators)).To(ContainElement(And(HavePrefix("Nova "+crashNamespace+"/demo: "), ContainSubstring("demo_"))))
	}, SpecTimeout(12*time.Minute))
})

// leftBehind returns the messages of the events LeftBehind in the operators' namespace.
func leftBehind(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	var found corev1.EventList
	Expect(k8s.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{"reason": "LeftBehind"})).To(Succeed())
	var left []string
	for _, event := range found.Items {
		left = append(left, event.Message)
	}
	return left
}

// killAfter kills the operator of each of these writes, counted from a position in the
// audit log, and returns the writes and their operators.
func killAfter(ctx context.Context, position int64, points []int) (killed []string) {
	GinkgoHelper()
	count := 0
	Eventually(func(g Gomega) {
		var news []request
		news, position = auditFrom(position)
		for _, r := range writes(by(news, crashOperators)) {
			if r.ObjectRef.Namespace != crashNamespace {
				continue
			}
			if len(points) > 0 && count == points[0] {
				points = points[1:]
				kill(ctx, strings.TrimPrefix(r.User.Username, account(crashOperators)))
				killed = append(killed, fmt.Sprintf("%d: %s", count, r))
			}
			count++
		}
		g.Expect(points).To(BeEmpty(), "after %d writes", count)
	}).WithContext(ctx).WithTimeout(10*time.Minute).WithPolling(50*time.Millisecond).Should(Succeed(), func() string { return explain(crashNamespace) })
	return killed
}

// kill kills an operator's process, and then deletes its pod and its lease, so that neither
// the back-off of the kubelet nor the time of the lease delays the restart.
func kill(ctx context.Context, serviceAccount string) {
	GinkgoHelper()
	killOf(ctx, crashOperators, serviceAccount)
}

// killOf is kill for the operators in any namespace of this suite.
func killOf(ctx context.Context, operators, serviceAccount string) {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, operators, operatorLabel) {
		if pod.Spec.ServiceAccountName != serviceAccount {
			continue
		}
		killProcesses(ctx, &pod)
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, &pod, client.GracePeriodSeconds(0)))).To(Succeed())
		deleteLeasesOf(ctx, &pod)
	}
}

// killProcesses kills the processes of a pod's containers. This machine is the node.
func killProcesses(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	for _, status := range pod.Status.ContainerStatuses {
		if id, ok := strings.CutPrefix(status.ContainerID, "containerd://"); ok && status.State.Running != nil {
			_, err := run(ctx, "", "ctr", "tasks", "kill", "--signal", "SIGKILL", id)
			if err != nil { // the process may have been killed before: two writes are close together
				Expect(err.Error()).To(Or(ContainSubstring("not found"), ContainSubstring("process already finished")))
			}
		}
	}
}

// deleteLeasesOf deletes the leases that a killed pod has not released.
func deleteLeasesOf(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	var leases coordinationv1.LeaseList
	Expect(k8s.List(ctx, &leases, client.InNamespace(pod.Namespace))).To(Succeed())
	for _, lease := range leases.Items {
		if ptr.Deref(lease.Spec.HolderIdentity, "") == pod.Name {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, &lease))).To(Succeed())
		}
	}
}

// suffix matches the hash at the end of a name.
var suffix = regexp.MustCompile(`-([0-9a-f]{8}|[0-9a-f]{16})$`)

// namesOf lists the objects that operators created in a namespace, except pods, and the
// Jobs of compute hosts and the SharedVolumes, which only the demo has.
func namesOf(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	var names []string
	for _, o := range everything(ctx, namespace) {
		name := o.GetKind() + "/" + suffix.ReplaceAllString(o.GetName(), "")
		if o.GetLabels()["app.kubernetes.io/managed-by"] == "asterism" && o.GetKind() != "Pod" && o.GetKind() != sharedVolume && !strings.Contains(name, "-discover") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
