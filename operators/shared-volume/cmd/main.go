// Command shared-volume-operator runs the operator of shared volumes.
package main

import (
	securityv1 "github.com/openshift/api/security/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/operator"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/driver"
	"asterism.dev/operators/shared-volume/internal/filesystem"
	"asterism.dev/operators/shared-volume/internal/volume"
)

func main() {
	kinds := runtime.NewSchemeBuilder(storagev1.AddToScheme, securityv1.Install)
	operator.Main("shared-volume", kinds.AddToScheme,
		volume.Service, volume.Grants, filesystem.Service, driver.Confined(driver.ImagesFromEnvironment()), driver.Singleton{})
}
