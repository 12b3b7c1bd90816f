package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// hangingDiscovery answers its first call, and no later call before its end.
type hangingDiscovery struct {
	called chan struct{}
	answer *metav1.APIResourceList
}

func (d *hangingDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, _ string) (*metav1.APIResourceList, error) {
	if answer := d.answer; answer != nil {
		d.answer = nil
		return answer, nil
	}
	close(d.called)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAHangingDiscoveryDelaysOnePass: others use the last answer.
func TestAHangingDiscoveryDelaysOnePass(t *testing.T) {
	g := NewWithT(t)
	route, other := schema.GroupVersionKind{Group: "r.example", Version: "v1", Kind: "Route"}, schema.GroupVersionKind{Group: "r.example", Version: "v1", Kind: "Other"}
	d := &hangingDiscovery{called: make(chan struct{}), answer: &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "Route", Namespaced: true}}}}
	k := &kinds{discovery: d, timeout: time.Minute, groups: map[schema.GroupVersion]group{}}
	_, err := k.lookup(t.Context(), route, false)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() { _, err := k.lookup(ctx, route, true); asked <- err }()
	<-d.called
	found := make(chan error)
	go func() {
		_, served := k.lookup(t.Context(), route, false)
		_, unserved := k.lookup(t.Context(), other, false)
		g.Expect(IsNotServed(unserved)).To(BeTrue())
		found <- served
	}()
	g.Eventually(found).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	cancel()
	g.Expect(<-asked).To(Succeed(), "the last answer stays valid")
}

// TestAHangingDiscoveryThatHasFailedDelaysOnePass: others use the failure.
func TestAHangingDiscoveryThatHasFailedDelaysOnePass(t *testing.T) {
	g := NewWithT(t)
	route := schema.GroupVersionKind{Group: "r.example", Version: "v1", Kind: "Route"}
	d := &hangingDiscovery{called: make(chan struct{})}
	k := &kinds{discovery: d, timeout: time.Minute, groups: map[schema.GroupVersion]group{
		route.GroupVersion(): {err: errors.New("no endpoints"), at: time.Now().Add(-time.Hour)},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() { _, err := k.lookup(ctx, route, false); asked <- err }()
	<-d.called
	found := make(chan error)
	go func() { _, err := k.lookup(t.Context(), route, false); found <- err }()
	g.Eventually(found).WithTimeout(30 * time.Second).Should(Receive(MatchError(ContainSubstring("no endpoints"))))
	cancel()
	g.Expect(<-asked).To(MatchError(context.Canceled))
}

// TestKindsOfKubernetesStay, and every other definition can be deleted.
func TestKindsOfKubernetesStay(t *testing.T) {
	g := NewWithT(t)
	k := &kinds{groups: map[schema.GroupVersion]group{}}
	g.Expect(k.mayBeGone(rbacv1.SchemeGroupVersion.WithKind("Role"))).To(BeFalse())
	g.Expect(k.mayBeGone(pods)).To(BeFalse())
	g.Expect(k.mayBeGone(schema.GroupVersion(gatewayv1.GroupVersion).WithKind("HTTPRoute"))).To(BeTrue())
}
