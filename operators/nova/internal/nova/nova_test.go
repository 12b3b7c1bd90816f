package nova

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
)

var (
	kinds = []func(*runtime.Scheme) error{
		novav1.AddToScheme, computev1.AddToScheme, conductorv1.AddToScheme, schedulerv1.AddToScheme, metadatav1.AddToScheme, novncproxyv1.AddToScheme, apiv1.AddToScheme,
	}
	siblings = []string{
		"../../../nova-compute/config/crd", "../../../nova-conductor/config/crd", "../../../nova-scheduler/config/crd",
		"../../../nova-metadata/config/crd", "../../../nova-novncproxy/config/crd", "../../../nova-api/config/crd",
	}
	subject = enginetest.Subject[*novav1.Nova]{
		Service: Service, AddToScheme: kinds, Conditions: novav1.NovaConditions, CRDs: siblings,
	}
	cellSubject = enginetest.Subject[*novav1.NovaCell]{
		Service: cell.Service, AddToScheme: kinds, Conditions: novav1.NovaCellConditions, CRDs: siblings,
		Testdata: "../cell/testdata",
	}
)

func TestNova(t *testing.T) {
	subject.Test(t)
	enginetest.Role(t, "../../config/rbac/role.yaml", subject, cellSubject)
}

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Nova")
}
