package nova

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

var _ = It("A Job with nova-manage has only connections, whatever the superconductor adds to its configuration", func() {
	cr := givenNova()
	cr.Spec.Superconductor.CustomServiceConfig = "[DEFAULT]\ndebug = true\n"
	cr.Spec.Superconductor.CustomServiceConfigSecretRefs = []commonv1.SecretReference{{Name: "mine"}}
	service, err := manage(cr, engine.Inputs{})
	Expect(err).NotTo(HaveOccurred())
	Expect(service.Spec.CustomServiceConfig).To(BeEmpty())
	Expect(service.Spec.CustomServiceConfigSecretRefs).To(BeEmpty())
})
