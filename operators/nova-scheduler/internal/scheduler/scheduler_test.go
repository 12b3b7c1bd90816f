package scheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaScheduler]{
	Subject: enginetest.Subject[*novav1.NovaScheduler]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaSchedulerConditions,
	},
	Kind:     "NovaScheduler",
	Sample:   "../../config/samples/scheduler.yaml",
	Stateful: true,
	Spec:     func(cr *novav1.NovaScheduler) *commonv1.ServiceSpec { return &cr.Spec.ServiceSpec },
}

func TestNovaScheduler(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) { subject.RunWiring(t, nil) }
