package api

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaAPI]{
	Subject: enginetest.Subject[*novav1.NovaAPI]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaAPIConditions,
	},
	Kind:   "NovaAPI",
	Sample: "../../config/samples/api.yaml",
	Spec:   func(cr *novav1.NovaAPI) *commonv1.ServiceSpec { return &cr.Spec.ServiceSpec },
	TLS:    func(cr *novav1.NovaAPI) **commonv1.SecretReference { return &cr.Spec.TLSSecretRef },
	Vary:   func(cr *novav1.NovaAPI) { cr.Spec.Exposure.Type = commonv1.ExposureNone },
}

func TestNovaAPI(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) {
	subject.Run(t, func() {
		It("reports the host of its Route as the public address", publishesRoute)
		It("counts its pods while an input is missing", countsPods)
		It("creates and deletes the Route when the exposure changes", changesExposure)
		It("replaces the object when the type of the exposure changes", changesType)
	})
}

func countsPods() {
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	Expect(cr.Status.ReadyReplicas).To(Equal(*cr.Spec.Replicas))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cr.Spec.Cell0DatabaseSecretRef.Name, Namespace: w.Namespace}}
	w.Delete(secret, metav1.DeletePropagationBackground)
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionInputsReady, engine.ReasonWaiting, secret.Name)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	w.Change(deployment, func() { deployment.Spec.Replicas = new(int32(0)) })
	enginetest.Eventually(GinkgoTB(), "the status counts no ready pod", func() error {
		if w.Read(cr); cr.Status.ReadyReplicas != 0 {
			return fmt.Errorf("readyReplicas is %d", cr.Status.ReadyReplicas)
		}
		return nil
	})
}
