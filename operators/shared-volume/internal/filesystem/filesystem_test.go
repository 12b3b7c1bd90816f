package filesystem

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

func TestSharedFileSystem(t *testing.T) {
	enginetest.Subject[*storagev1.SharedFileSystem]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
		Conditions:  storagev1.SharedFileSystemConditions,
	}.Test(t)
}
