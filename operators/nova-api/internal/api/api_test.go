package api

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
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
	Vary:   func(cr *novav1.NovaAPI) { cr.Spec.Exposure = commonv1.ExposureNone },
}

func TestNovaAPI(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) {
	subject.Run(t, func() {
		It("has the host of its Route as the public address", publishesRoute)
		It("makes and removes the Route when the exposure changes", changesExposure)
	})
}
