package workload_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
	"asterism.dev/lib/common/kolla"
	"asterism.dev/lib/common/workload"
)

// TestPrivilegedPodsNeedAnAdministrator, who sets the label of the namespace and creates the
// ServiceAccount: nothing is built without the label.
func TestPrivilegedPodsNeedAnAdministrator(t *testing.T) {
	g := NewWithT(t)
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	w := enginetest.NewWorld(t, enginetest.Kubelet{}, widget.AddToScheme)
	enforce := func(level string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": `+level+`}}}`))
		g.Expect(w.Client.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}, patch)).To(Succeed())
	}
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bus"}, StringData: map[string]string{"hostname": "bus.example.org", "user": "u", "password": "p"}})
	w.Run(engine.Service[*widget.Widget]{
		Name: "thing",
		Owns: []client.Object{&appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &corev1.ConfigMap{}, &corev1.Secret{}},
		Stages: []engine.Stage[*widget.Widget]{
			{
				Condition: "ConfigReady",
				Needs:     func(cr *widget.Widget) []engine.Need { return thing(cr).Inputs() },
				Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
					return thing(cr).Configuration(in)
				},
			},
			{Condition: "WorkloadReady", Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) { return thing(cr).Stateful(in) }},
		},
	})
	cr := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Name: "refused"}}
	w.Create(cr)
	refused := func(state string) {
		enginetest.AwaitReason(t, w.Client, cr, "ConfigReady", engine.ReasonWaiting, "Namespace "+w.Namespace+" has "+state,
			"kubectl label namespace "+w.Namespace+" pod-security.kubernetes.io/enforce=privileged --overwrite")
		g.Expect(w.Read(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}})).To(BeFalse())
	}
	refused("no label pod-security.kubernetes.io/enforce")
	enforce(`"baseline"`)
	refused("the label pod-security.kubernetes.io/enforce=baseline")
	enforce(`"privileged"`)
	enginetest.AwaitReason(t, w.Client, cr, "WorkloadReady", engine.ReasonProgressing,
		"no pod exists: see kubectl describe statefulset refused")
	w.Create(account(t))
	enginetest.AwaitReady(t, w.Client, cr)

	scripts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused-scripts"}}
	g.Expect(w.Read(scripts)).To(BeTrue())
	g.Expect(scripts.Data).To(HaveKeyWithValue("config.json", MatchJSON(`{"command": "/usr/local/bin/container-scripts/start-service thing"}`)))
	g.Expect(scripts.Data).To(HaveKey("run-on-host"))
}

// thing describes a service that needs only a message bus.
func thing(cr *widget.Widget) workload.Service {
	s := workload.Service{Name: "thing", Instance: cr.Name, Project: workload.Project{Name: "thing"}, MessageBus: "bus", Command: workload.Start("thing"), RunOnHost: true}
	s.Spec.ContainerImage = "quay.example/thing:1"
	return s
}

// account returns the ServiceAccount that an administrator creates.
func account(t *testing.T) client.Object {
	t.Helper()
	read := enginetest.ReadSample(t, manifest, "ServiceAccount")
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: read.GetName()}}
}

const manifest = "../../../config/run-on-host/account.yaml"

// TestOneAccountMayUseTheConstraints: the manifest of an administrator gives the right to
// one SecurityContextConstraints, by its name, to the account of the pods.
func TestOneAccountMayUseTheConstraints(t *testing.T) {
	g := NewWithT(t)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	for kind, into := range map[string]any{"Role": &role, "RoleBinding": &binding} {
		read := enginetest.ReadSample(t, manifest, kind)
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(read.Object, into, true)).To(Succeed())
	}
	g.Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{
		Verbs: []string{"use"}, APIGroups: []string{"security.openshift.io"}, Resources: []string{"securitycontextconstraints"}, ResourceNames: []string{"privileged"},
	}}))
	g.Expect(binding.RoleRef.Name).To(Equal(role.Name))
	g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Name: kolla.ServiceAccount}}))
	g.Expect(account(t).GetName()).To(Equal(kolla.ServiceAccount))
}
