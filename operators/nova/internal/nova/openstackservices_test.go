package nova

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// TestChangesOfAnEndpointAreCounted, and the first endpoint is none, nor one of another lookup.
func TestChangesOfAnEndpointAreCounted(t *testing.T) {
	now := time.Now()
	var status novav1.OpenStackServiceStatus
	for _, c := range []struct {
		what, lookup, found string
		after               time.Duration
		endpoint            string
		changes             int32
	}{
		{"not in the catalog", "internal", "", 0, "", 0},
		{"new", "internal", "http://one", time.Minute, "http://one", 0},
		{"the same", "internal", "http://one", time.Hour, "http://one", 0},
		{"moved", "internal", "http://two", time.Minute, "http://two", 1},
		{"moved back at once", "internal", "http://one", 9 * time.Minute, "http://two", 1},
		{"still moved back", "internal", "http://one", time.Minute, "http://one", 2},
		{"not in the catalog for a while", "internal", "", time.Hour, "http://one", 2},
		{"there again", "internal", "http://one", time.Hour, "http://one", 2},
		{"the same by another lookup", "public", "http://one", time.Hour, "http://one", 2},
		{"moved since", "public", "http://three", time.Hour, "http://three", 3},
		{"another one by another lookup", "internal", "http://one", time.Hour, "http://one", 3},
		{"moved since then", "internal", "http://two", time.Hour, "http://two", 4},
	} {
		now = now.Add(c.after)
		before := status
		status = statusOf(c.lookup, status, c.found, now)
		if status.Endpoint != c.endpoint || status.Changes != c.changes || status.Changes > before.Changes && !status.LastChangeTime.Equal(&metav1.Time{Time: now}) {
			t.Fatalf("%s: got %+v, want %s and %d changes", c.what, status, c.endpoint, c.changes)
		}
	}
}

// TestOnlyWhatIsLookedUpIsRevised: another entry restarts the callers itself.
func TestOnlyWhatIsLookedUpIsRevised(t *testing.T) {
	cr := givenNova()
	cr.Spec.OpenStackServices = []sharedv1.OpenStackService{{Name: "Placement", EndpointOverride: "http://stated"}, {Name: "Cinder", EndpointRevision: "by-hand"}}
	for _, name := range []sharedv1.OpenStackServiceName{"Placement", "Cinder", "Ironic", "Neutron"} {
		cr.Status.OpenStackServices = append(cr.Status.OpenStackServices, novav1.OpenStackServiceStatus{Name: name, Changes: 1})
	}
	cr.Status.OpenStackServices[3].Changes = 0
	if got := sharedConnections(cr, engine.Inputs{}).OpenStackServices; !slices.Equal(got, cr.Spec.OpenStackServices) {
		t.Errorf("got %+v", got)
	}
}

var _ = Describe("The catalog", func() {
	It("restarts the callers of a service whose endpoint has changed", func() {
		c := newCloud()
		cr := c.given()
		c.publish("http://placement.one:8778")
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		endpoint := func() any {
			c.Read(cr)
			if len(cr.Status.OpenStackServices) == 0 {
				return nil
			}
			return cr.Status.OpenStackServices[0].Endpoint
		}
		api := &apiv1.NovaAPI{ObjectMeta: named(apiName(cr))}
		revision := func() string {
			c.Read(api)
			if len(api.Spec.OpenStackServices) == 0 {
				return ""
			}
			return api.Spec.OpenStackServices[0].EndpointRevision
		}
		Eventually(endpoint, time.Minute).Should(Equal("http://placement.one:8778"))
		Expect(revision()).To(BeEmpty(), "nothing restarts for the first endpoint")

		c.publish("http://placement.two:8778")
		c.Change(cr, func() { cr.Spec.Scheduler.Replicas = new(int32(2)) }) // any change sends a request at once
		Eventually(endpoint, time.Minute).Should(Equal("http://placement.two:8778"))
		Eventually(revision, time.Minute).Should(Equal("1"))
		Expect(api.Spec.OpenStackServices).To(HaveLen(1))
		cell := cellNamed(cr, cr.Spec.Cells[0])
		Eventually(func() []sharedv1.OpenStackService { c.Read(cell); return cell.Spec.OpenStackServices }, time.Minute).Should(Equal(api.Spec.OpenStackServices))

		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.Read(api)
		generation := api.Generation
		Expect(c.Client.Status().Patch(GinkgoT().Context(), cr, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`)))).To(Succeed())
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Eventually(func() int32 {
			if endpoint() == nil {
				return 0
			}
			return cr.Status.OpenStackServices[0].Changes
		}, time.Minute).Should(BeEquivalentTo(1))
		c.Read(api)
		Expect(api.Generation).To(Equal(generation), "a lost status restarts nothing")

		keystone := &corev1.Secret{ObjectMeta: named(cr.Spec.Identity.ConnectionSecretRef.Name)}
		c.publish("http://placement.three:8778")
		c.Change(keystone, func() { keystone.Data["project"] = []byte("another") })
		Eventually(endpoint, time.Minute).Should(Equal("http://placement.three:8778"))
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(revision()).To(Equal("1"), "another account restarts the pods itself")
	})
})
