package novncproxy

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaNoVNCProxy]{
	Subject: enginetest.Subject[*novav1.NovaNoVNCProxy]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaNoVNCProxyConditions,
	},
	Kind:   "NovaNoVNCProxy",
	Sample: "../../config/samples/novncproxy.yaml",
	Spec:   func(cr *novav1.NovaNoVNCProxy) *commonv1.ServiceSpec { return &cr.Spec.ServiceSpec },
	TLS:    func(cr *novav1.NovaNoVNCProxy) **commonv1.SecretReference { return &cr.Spec.TLSSecretRef },
	Vary:   func(cr *novav1.NovaNoVNCProxy) { cr.Spec.Exposure.Type = commonv1.ExposureNone },
}

func TestNovaNoVNCProxy(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) {
	subject.RunWiring(t, func() {
		It("reports the address of its page", reportsPage)
	})
}

func reportsPage() {
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	Expect(cr.Status.Endpoints).To(HaveEach(HaveField("URL", "http://"+cr.Name+"."+w.Namespace+".svc.cluster.local:6080/vnc_lite.html")))
}
