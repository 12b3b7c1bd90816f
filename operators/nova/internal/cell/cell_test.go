package cell

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func TestNovaCell(t *testing.T) {
	enginetest.Subject[*novav1.NovaCell]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme, conductorv1.AddToScheme, metadatav1.AddToScheme, novncproxyv1.AddToScheme, computev1.AddToScheme, schedulerv1.AddToScheme, apiv1.AddToScheme},
		Conditions:  novav1.NovaCellConditions,
		CRDs:        []string{"../../../nova-conductor/config/crd", "../../../nova-metadata/config/crd", "../../../nova-novncproxy/config/crd", "../../../nova-compute/config/crd", "../../../nova-scheduler/config/crd", "../../../nova-api/config/crd"},
	}.Test(t)
}
