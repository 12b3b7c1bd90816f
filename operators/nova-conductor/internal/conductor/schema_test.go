package conductor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
)

type world = workloadtest.World[*novav1.NovaConductor]

// runs records the Jobs whose pods the kubelet has ended. fail, if set, is the error of the
// next Job, which starts when begin is closed; nil: at once.
type runs struct {
	mu    sync.Mutex
	jobs  []types.UID
	fail  string
	begin chan struct{}
}

func (r *runs) end(pod *corev1.Pod) (code int32, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begin != nil {
		select {
		case <-r.begin:
		default:
			return -1, ""
		}
	}
	r.jobs = append(r.jobs, pod.OwnerReferences[0].UID)
	if r.fail != "" {
		message, r.fail = r.fail, ""
		return 1, message
	}
	return 0, ""
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs)
}

func jobs(w *world) []batchv1.Job {
	found := &batchv1.JobList{}
	Expect(w.Client.List(context.Background(), found, client.InNamespace(w.Namespace))).To(Succeed())
	return found.Items
}

func syncsWhenNeeded() {
	synced := &runs{}
	w := subject.NewWorld(enginetest.Kubelet{Job: synced.end})
	cr := w.Ready()
	Expect(synced.count()).To(Equal(1))
	Expect(jobs(w)).To(HaveLen(1))
	script := strings.Join(jobs(w)[0].Spec.Template.Spec.Containers[0].Command, " ")
	Expect(script).To(MatchRegexp(`(?s)api_db sync.*db sync --local_cell`))

	for name, change := range map[string]func(){
		"the snippet":       func() { cr.Spec.CustomServiceConfig = "[conductor]\nworkers = 3" },
		"resources":         func() { cr.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")} },
		"the node selector": func() { cr.Spec.Pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux"} },
		"triggers":          func() { cr.Spec.RestartTriggers = map[string]string{"cell1": "new"} },
		"replicas":          func() { cr.Spec.Replicas = new(int32(2)) },
	} {
		w.Operator.Requests.Reset()
		w.Change(cr, change)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(w.Written()).NotTo(ContainElement(ContainSubstring(" jobs ")), "a change of "+name)
	}
	bus := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bus"}}
	hash := w.Hash(cr)
	w.Change(bus, func() { bus.StringData = map[string]string{"vhost": "another"} })
	hash = w.AwaitNewPods(cr, hash)
	Expect(synced.count()).To(Equal(1), "none of these changes concerns the schema")

	w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/openstack/nova:next" })
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(synced.count()).To(Equal(2))
	cell0 := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cell0-database"}}
	w.Change(cell0, func() { cell0.StringData = map[string]string{"database": "another"} })
	w.AwaitNewPods(cr, hash)
	Expect(synced.count()).To(Equal(3))
	Expect(jobs(w)).To(HaveLen(1), "the former Job is deleted")
}

func retriesSync() {
	synced := &runs{begin: make(chan struct{}), fail: "File \"manage.py\", line 1\n  stack\nAccess denied for mysql+pymysql://nova_api:change-me@db.example.org/"}
	w := subject.NewWorld(enginetest.Kubelet{Job: synced.end})
	cr := subject.Object()
	w.Create(cr)
	job := held(w)
	close(synced.begin)
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionSchemaReady, engine.ReasonJobFailed, "db ended with 1", "Access denied for mysql+pymysql://nova_api:***@db.example.org")
	Expect(enginetest.Conditions(cr)).NotTo(ContainSubstring("change-me"))
	Expect(w.Read(job)).To(BeTrue(), "the Job that has failed")
	Expect(job.Status.Failed).To(BeEquivalentTo(1))
	Expect(fmt.Sprint(job)).NotTo(ContainSubstring("change-me"))
	w.Change(job, func() { controllerutil.RemoveFinalizer(job, heldFinalizer) })
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(synced.count()).To(Equal(2))
}

func letsSyncEnd() {
	synced := &runs{begin: make(chan struct{})}
	w := subject.NewWorld(enginetest.Kubelet{Job: synced.end})
	cr := subject.Object()
	w.Create(cr)
	first := held(w)
	w.Change(first, func() { controllerutil.RemoveFinalizer(first, heldFinalizer) })
	setPhase := func(phase corev1.PodPhase) {
		GinkgoHelper()
		enginetest.Eventually(GinkgoTB(), "the pod of the Job has another phase", func() error {
			pods := &corev1.PodList{}
			if err := w.Client.List(context.Background(), pods, client.InNamespace(w.Namespace), client.MatchingLabels{batchv1.JobNameLabel: first.Name}); err != nil {
				return err
			}
			if len(pods.Items) == 0 {
				return errors.New("no pod")
			}
			before := pods.Items[0].DeepCopy()
			pods.Items[0].Status.Phase = phase
			return w.Client.Status().Patch(context.Background(), &pods.Items[0], client.MergeFrom(before))
		})
	}
	setPhase(corev1.PodRunning)
	w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/openstack/nova:next" })
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionSchemaReady, engine.ReasonProgressing, first.Name+" is superseded, and is replaced when it ends")
	close(synced.begin)
	setPhase(corev1.PodSucceeded)
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(synced.count()).To(Equal(1), "the second Job")
}

const heldFinalizer = "test.asterism.dev/held"

// held waits for the Job, and adds a finalizer, with which it outlives its deletion.
func held(w *world) *batchv1.Job {
	GinkgoHelper()
	enginetest.Eventually(GinkgoTB(), "the Job exists", func() error {
		if len(jobs(w)) == 0 {
			return errors.New("no Job")
		}
		return nil
	})
	job := &jobs(w)[0]
	w.Change(job, func() { controllerutil.AddFinalizer(job, heldFinalizer) })
	return job
}

func leavesSchema() {
	w := subject.NewWorld(enginetest.Kubelet{})
	w.Ready(func(cr *novav1.NovaConductor) { cr.Spec.Schema.Management = novav1.SchemaExternal })
	Expect(w.Operator.Requests.Of("apply", "jobs")).To(BeEmpty())
}

func holds() {
	synced := &runs{}
	w := subject.NewWorld(enginetest.Kubelet{Job: synced.end})
	cr := subject.Object(func(cr *novav1.NovaConductor) { cr.Spec.Rollout = commonv1.RolloutHeld })
	w.Create(cr)
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionWorkloadReady, engine.ReasonWaiting, "Held")
	enginetest.Await(GinkgoTB(), w.Client, cr, novav1.ConditionSchemaReady, metav1.ConditionTrue)
	Expect(w.Read(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}})).To(BeFalse())

	w.Change(cr, func() { cr.Spec.Rollout = commonv1.RolloutAutomatic })
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	before, _, _ := w.Pods(cr)

	w.Change(cr, func() {
		cr.Spec.Rollout = commonv1.RolloutHeld
		cr.Spec.ContainerImage = "quay.example/openstack/nova:next"
	})
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionWorkloadReady, engine.ReasonWaiting, "Held")
	Expect(synced.count()).To(Equal(2), "the new image has synced the schema")
	after, template, _ := w.Pods(cr)
	Expect(after.GetGeneration()).To(Equal(before.GetGeneration()))
	Expect(template.Spec.Containers[0].Image).To(Equal("quay.example/openstack/nova:26.2.2"))
}

func runsCell() {
	cell := subject
	cell.Sample = "../../config/samples/cell.yaml"
	w := cell.NewWorld(enginetest.Kubelet{})
	w.Ready()
	Expect(jobs(w)).To(HaveLen(1))
	script := strings.Join(jobs(w)[0].Spec.Template.Spec.Containers[0].Command, " ")
	Expect(script).To(And(ContainSubstring("db sync --local_cell"), Not(ContainSubstring("api_db"))))
}

func trustsCell0() {
	synced := &runs{}
	w := subject.NewWorld(enginetest.Kubelet{Job: synced.end})
	cell0 := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cell0"}, StringData: map[string]string{"password": "change-me"}}
	w.Create(cell0)
	cr := w.Ready(func(cr *novav1.NovaConductor) {
		cr.Spec.Role, cr.Spec.Cell0DatabaseSecretRef = novav1.RoleCell, &commonv1.SecretReference{Name: cell0.Name}
	})
	without := w.Hash(cr)
	trust := func(authority []byte) string {
		GinkgoHelper()
		former := w.Hash(cr)
		w.Change(cell0, func() { cell0.Data = map[string][]byte{"ca.crt": authority} })
		return w.AwaitNewPods(cr, former)
	}
	trust(certificatetest.NewAuthority(GinkgoTB()).PEM)
	trusting := trust(certificatetest.NewAuthority(GinkgoTB()).PEM)
	w.Change(cell0, func() { cell0.StringData = map[string]string{"password": "another-one", "tls": "true"} })
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Consistently(func() string { return w.Hash(cr) }).WithTimeout(time.Second).Should(Equal(trusting))
	w.Change(cell0, func() { cell0.StringData = map[string]string{"tls": "false"} })
	Expect(w.AwaitNewPods(cr, trusting)).To(Equal(without))
	Expect(synced.count()).To(Equal(1), "none of these changes concerns the schema")
}
