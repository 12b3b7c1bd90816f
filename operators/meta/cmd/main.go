// Command meta-operator runs the operator of ControlPlane.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/operator"

	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	"asterism.dev/operators/meta/internal/controlplane"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

func main() {
	kinds := runtime.NewSchemeBuilder(metav1alpha1.AddToScheme, novav1.AddToScheme, storagev1.AddToScheme)
	operator.Main("meta", kinds.AddToScheme, controlplane.Service)
}
