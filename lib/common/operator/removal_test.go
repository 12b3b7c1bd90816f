package operator_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
	"asterism.dev/lib/common/operator"
)

// TestRemovalIsRefusedWhileObjectsExist: with the rights of its account, the operator finds
// the objects of the namespaces that are handed over, or that WATCH_NAMESPACE lists.
func TestRemovalIsRefusedWhileObjectsExist(t *testing.T) {
	h := newHandOver(t)
	namespace := enginetest.Namespace(t)
	check := func() error {
		return operator.CheckRemoval(h.ctx, h.config, widget.AddToScheme, []operator.Controller{h.service()})
	}
	h.widget(enginetest.Namespace(t)) // not handed over
	h.handOver(namespace)
	h.Eventually(h.mayWatch(namespace)).Should(BeTrue())
	h.Expect(check()).To(Succeed(), "the namespace has no objects")

	h.widget(namespace)
	owned := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Rack", Name: "r1", UID: "1", Controller: new(true)},
	}}}
	h.Expect(h.client.Create(h.ctx, owned)).To(Succeed())
	h.widgets = append(h.widgets, owned)
	lines := []string{
		"2 objects still need this operator",
		"kubectl delete widget widget --namespace " + namespace,
		"Widget owned in namespace " + namespace + ", which Rack r1 owns",
	}
	for _, set := range []bool{false, true} {
		if set {
			t.Setenv("WATCH_NAMESPACE", namespace)
		}
		err := check()
		h.Expect(err).To(HaveOccurred())
		for _, line := range lines {
			h.Expect(err.Error()).To(ContainSubstring(line))
		}
		h.Expect(strings.Count(err.Error(), "\n")).To(Equal(2))
	}
}
