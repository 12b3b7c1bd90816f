package v1alpha1_test

import (
	"testing"

	"asterism.dev/lib/common/workload/workloadtest"
)

var admission = workloadtest.Admission{
	Kind:     "NovaScheduler",
	Sample:   "../../config/samples/scheduler.yaml",
	Required: []string{"apiDatabaseSecretRef", "cell0DatabaseSecretRef", "messageBusSecretRef", "identitySecretRef"},
}

func TestAdmission(t *testing.T) { admission.Run(t) }
