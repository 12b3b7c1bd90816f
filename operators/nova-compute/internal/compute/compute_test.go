package compute

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

var subject = enginetest.Subject[*novav1.NovaCompute]{
	Service:     Service,
	AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
	Conditions:  novav1.NovaComputeConditions,
	Explained:   []enginetest.Right{{Resource: "namespaces", Verb: "get"}},
}

func TestNovaCompute(t *testing.T) {
	subject.Test(t)
	enginetest.Role(t, "../../config/rbac/role.yaml", subject)
}
