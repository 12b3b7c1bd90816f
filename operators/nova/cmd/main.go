// Command nova-operator runs the operator of Nova and NovaCell.
package main

import (
	"flag"

	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/operator"
	"asterism.dev/lib/registration/remote"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/nova"
)

func main() {
	flag.BoolVar(&remote.AllowAnyServer, "allow-any-server", false, "allow loopback and link-local addresses, addresses of clouds' metadata services, and Services of type ExternalName; by default they are refused, because every editor of a namespace chooses servers")
	kinds := runtime.NewSchemeBuilder(novav1.AddToScheme, computev1.AddToScheme, conductorv1.AddToScheme, schedulerv1.AddToScheme, metadatav1.AddToScheme, novncproxyv1.AddToScheme, apiv1.AddToScheme)
	operator.Main("nova", kinds.AddToScheme, nova.Service, cell.Service, operator.HoldUpgrade(&conductorv1.NovaConductor{}))
}
