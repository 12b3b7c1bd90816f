package metadata

import (
	. "github.com/onsi/gomega"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
)

func reportsAddress() {
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	Expect(cr.Status.Endpoints).To(Equal([]commonv1.Endpoint{
		{Interface: commonv1.InterfaceInternal, URL: "http://" + cr.Name + "." + w.Namespace + ".svc.cluster.local:8775"},
	}))
}
