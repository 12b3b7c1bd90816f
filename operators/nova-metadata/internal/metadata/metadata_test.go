package metadata

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload/workloadtest"

	novav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
)

var subject = workloadtest.Subject[*novav1.NovaMetadata]{
	Subject: enginetest.Subject[*novav1.NovaMetadata]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{novav1.AddToScheme},
		Conditions:  novav1.NovaMetadataConditions,
	},
	Kind:   "NovaMetadata",
	Sample: "../../config/samples/metadata.yaml",
	Spec:   func(cr *novav1.NovaMetadata) *commonv1.ServiceSpec { return &cr.Spec.ServiceSpec },
	TLS:    func(cr *novav1.NovaMetadata) **commonv1.SecretReference { return &cr.Spec.TLSSecretRef },
}

func TestNovaMetadata(t *testing.T) { subject.Test(t) }

func TestSuite(t *testing.T) {
	subject.RunWiring(t, func() {
		It("reports its addresses for the agents of Neutron in the cluster and outside", reportsAddresses)
	})
}
