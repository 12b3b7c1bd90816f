package operator_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/crds"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
	"asterism.dev/lib/common/operator"
)

// upgrade runs an operator that has the rights of an installation by OLM: on its own
// OperatorCondition, and on the Jobs of the namespace that it watches.
type upgrade struct {
	Gomega
	ctx            context.Context
	client         client.Client
	own, watched   string
	condition      *operatorsv2.OperatorCondition
	serviceAccount rbacv1.Subject
	widget         *widget.Widget
	rack           *widget.Rack
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	installOperatorConditions(t)
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	u := &upgrade{
		Gomega: NewWithT(t), ctx: context.WithoutCancel(t.Context()),
		client: enginetest.Client(t, widget.AddToScheme, operatorsv2.AddToScheme),
		own:    enginetest.Namespace(t), watched: enginetest.Namespace(t),
	}
	u.SetDefaultEventuallyTimeout(2 * time.Minute)
	u.serviceAccount = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: u.own, Name: "widget-operator"}
	u.condition = &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: u.own, Name: "widget-operator.v0.1.0"}}
	u.condition.Spec.Deployments = []string{"widget-operator"}
	u.condition.Spec.Conditions = []metav1.Condition{{
		Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "JobRuns", Message: "of an earlier process", LastTransitionTime: metav1.Now(),
	}}
	u.Expect(u.client.Create(u.ctx, u.condition)).To(Succeed())
	named := metav1.ObjectMeta{Namespace: u.watched, Name: "left"}
	u.widget, u.rack = &widget.Widget{ObjectMeta: named}, &widget.Rack{ObjectMeta: named}
	u.Expect(u.client.Create(u.ctx, u.widget)).To(Succeed())
	u.Expect(u.client.Create(u.ctx, u.rack)).To(Succeed())
	u.allow(u.own, rbacv1.PolicyRule{
		APIGroups: []string{operatorsv2.GroupVersion.Group}, Resources: []string{"operatorconditions"},
		ResourceNames: []string{u.condition.Name}, Verbs: []string{"get", "update", "patch"},
	})
	u.allow(
		u.watched, rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch"}},
	)
	t.Setenv("POD_NAMESPACE", u.own)
	t.Setenv("WATCH_NAMESPACE", u.watched)
	return u
}

// installOperatorConditions installs OLM's own CustomResourceDefinition.
func installOperatorConditions(t *testing.T) {
	t.Helper()
	content, err := yaml.Marshal(crds.OperatorCondition())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "operatorconditions.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	enginetest.InstallCRDs(t, path)
}

// allow gives the operator's account rights in a namespace.
func (u *upgrade) allow(namespace string, rules ...rbacv1.PolicyRule) {
	named := metav1.ObjectMeta{Namespace: namespace, Name: "widget-operator"}
	u.Expect(u.client.Create(u.ctx, &rbacv1.Role{ObjectMeta: named, Rules: rules})).To(Succeed())
	u.Expect(u.client.Create(u.ctx, &rbacv1.RoleBinding{
		ObjectMeta: named, Subjects: []rbacv1.Subject{u.serviceAccount},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
	})).To(Succeed())
}

// run runs the operator, with other controllers, until it is stopped or the test ends.
func (u *upgrade) run(t *testing.T, others ...operator.Controller) (stop func()) {
	t.Helper()
	config := enginetest.Config(t)
	config.Impersonate.UserName = "system:serviceaccount:" + u.own + ":" + u.serviceAccount.Name
	ctx, cancel := context.WithCancel(u.ctx)
	ended := make(chan error, 1)
	controllers := append([]operator.Controller{operator.HoldUpgrade(&widget.Widget{})}, others...)
	go func() { ended <- operator.Run(ctx, config, widget.AddToScheme, controllers...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		u.Expect(<-ended).To(Succeed())
	})
	t.Cleanup(stop)
	return stop
}

// upgradeable returns the condition that OLM reads.
func (u *upgrade) upgradeable() metav1.Condition {
	u.Expect(u.client.Get(u.ctx, client.ObjectKeyFromObject(u.condition), u.condition)).To(Succeed())
	found := meta.FindStatusCondition(u.condition.Spec.Conditions, operatorsv2.Upgradeable)
	u.Expect(found).NotTo(BeNil())
	return metav1.Condition{Status: found.Status, Reason: found.Reason, Message: found.Message}
}

// job creates a Job of an object, with a running pod or with a pod that waits. The Job is not
// managed by Kubernetes, so that its status stays.
func (u *upgrade) job(name string, owner client.Object, running int32) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: u.watched, Name: name}}
	u.Expect(controllerutil.SetControllerReference(owner, job, u.client.Scheme())).To(Succeed())
	job.Spec.ManagedBy = new("asterism.dev/test")
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main"}}}
	u.Expect(u.client.Create(u.ctx, job)).To(Succeed())
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, Active: 1, Ready: &running}
	u.Expect(u.client.Status().Update(u.ctx, job)).To(Succeed())
	return job
}

func (u *upgrade) complete(job *batchv1.Job) {
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: job.Status.StartTime, CompletionTime: &now, Succeeded: 1, Ready: new(int32(0)), Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	u.Expect(u.client.Status().Update(u.ctx, job)).To(Succeed())
}

var idle = metav1.Condition{Status: metav1.ConditionTrue, Reason: "NoJobRuns"}

// TestUpgradeWaitsForRunningJobs: Jobs of the named kind with a running pod hold an upgrade
// until they end or are deleted.
func TestUpgradeWaitsForRunningJobs(t *testing.T) {
	u := newUpgrade(t)
	t.Setenv("OPERATOR_CONDITION_NAME", u.condition.Name)
	u.run(t)
	u.Eventually(u.upgradeable).Should(Equal(idle), "the condition of an earlier process")

	u.job("waits", u.widget, 0)
	u.job("other", u.rack, 1)
	// The messages below name only first and second.
	second, first := u.job("second", u.widget, 1), u.job("first", u.widget, 1)
	held := func(jobs string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: "JobRuns", Message: "the upgrade waits until these Jobs end: " + jobs}
	}
	ofFirst, ofSecond := "Job "+u.watched+"/first of Widget left", "Job "+u.watched+"/second of Widget left"
	u.Eventually(u.upgradeable).Should(Equal(held(ofFirst + ", " + ofSecond)))
	u.complete(first)
	u.Eventually(u.upgradeable).Should(Equal(held(ofSecond)))
	u.Expect(u.client.Delete(u.ctx, second)).To(Succeed())
	u.Eventually(u.upgradeable).Should(Equal(idle))
	u.Expect(u.condition.Spec.Deployments).To(Equal([]string{"widget-operator"}), "the fields of OLM")
}

// TestUpgradeIsLeftAloneWithoutOLM: without the variable, the operator has no
// OperatorCondition.
func TestUpgradeIsLeftAloneWithoutOLM(t *testing.T) {
	u := newUpgrade(t)
	before := u.condition.ResourceVersion
	u.job("runs", u.widget, 1)
	stop := u.run(t, engine.Service[*widget.Widget]{Name: "beside", Stages: []engine.Stage[*widget.Widget]{{Condition: "Made"}}})
	u.Eventually(func() ([]metav1.Condition, error) {
		err := u.client.Get(u.ctx, client.ObjectKeyFromObject(u.widget), u.widget)
		return u.widget.Status.Conditions, err
	}).ShouldNot(BeEmpty(), "the operator works")
	stop()
	u.upgradeable()
	u.Expect(u.condition.ResourceVersion).To(Equal(before))
}
