package operator

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// TestManyNamespacesAreToldOnce, with the number of the documentation.
func TestManyNamespacesAreToldOnce(t *testing.T) {
	g := NewWithT(t)
	running := &tenants{}
	g.Expect(running.advise(manyNamespaces)).To(BeEmpty())
	g.Expect(running.advise(manyNamespaces + 1)).To(ContainSubstring("for all namespaces"))
	g.Expect(running.advise(manyNamespaces+2)).To(BeEmpty(), "told before")
	g.Expect(running.advise(manyNamespaces)).To(BeEmpty())
	g.Expect(running.advise(manyNamespaces+1)).NotTo(BeEmpty(), "more again")
	page, err := os.ReadFile("../../../docs/limits.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(ContainSubstring(fmt.Sprintf("with more than %d, install the operators for all namespaces", manyNamespaces)))
}
