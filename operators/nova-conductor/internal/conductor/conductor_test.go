package conductor

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaConductor]{
	Subject: enginetest.Subject[*novav1.NovaConductor]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaConductorConditions,
	},
	Kind:     "NovaConductor",
	Sample:   "../../config/samples/superconductor.yaml",
	Spec:     func(cr *novav1.NovaConductor) *commonv1.ServiceSpec { return &cr.Spec.ServiceSpec },
	Stateful: true,
}

func TestNovaConductor(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) {
	subject.Run(t, func() {
		It("syncs the schema again for another image or database only", syncsWhenNeeded)
		It("reports the error of a failed sync without secrets, and tries again", retriesSync)
		It("lets a running sync end before another one starts", letsSyncEnd)
		It("runs no sync if schema.management is External", leavesSchema)
		It("syncs the schema and does not change the pods while the rollout is held", holds)
		It("runs the conductor of a cell without the API database", runsCell)
		It("restarts the conductor of a cell for another authority of cell0, and for nothing else of its Secret", trustsCell0)
	})
}
