package api

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

var subject = enginetest.Subject[*novav1.NovaAPI]{
	Service:     Service,
	AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
	Conditions:  novav1.NovaAPIConditions,
}

func TestNovaAPI(t *testing.T) {
	subject.Test(t)
	enginetest.Role(t, filepath.Join("..", "..", "config", "rbac", "role.yaml"), subject)
}
