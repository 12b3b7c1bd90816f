package compute

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaCompute]{
	Subject: enginetest.Subject[*novav1.NovaCompute]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaComputeConditions,
	},
	Kind:     "NovaCompute",
	Sample:   sample,
	Stateful: true,
	Settings: func(cr *novav1.NovaCompute) *commonv1.ServiceSettings { return &cr.Spec.ServiceSettings },
}

func TestNovaCompute(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) { subject.RunWiring(t, nil) }
