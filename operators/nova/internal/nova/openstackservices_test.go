package nova

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/nova"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// TestChangesOfAnEndpointAreCounted, and the first endpoint is none.
func TestChangesOfAnEndpointAreCounted(t *testing.T) {
	lookup, now := nova.Lookup{Name: sharedv1.OpenStackPlacement, Types: []string{"placement"}, Interface: "internal"}, time.Now()
	var status *novav1.OpenStackServiceStatus
	for _, c := range []struct {
		what, found string
		after       time.Duration
		endpoint    string
		changes     int32
	}{
		{"not in the catalog", "", 0, "", 0},
		{"new", "http://one", time.Minute, "http://one", 0},
		{"the same", "http://one", time.Hour, "http://one", 0},
		{"moved", "http://two", time.Minute, "http://two", 1},
		{"moved back at once", "http://one", 9 * time.Minute, "http://two", 1},
		{"still moved back", "http://one", time.Minute, "http://one", 2},
		{"not in the catalog for a while", "", time.Hour, "http://one", 2},
		{"there again", "http://one", time.Hour, "http://one", 2},
	} {
		now = now.Add(c.after)
		status = statusOf(lookup, status, c.found, now)
		if c.endpoint == "" && status == nil {
			continue
		}
		if status == nil || status.Endpoint != c.endpoint || status.Changes != c.changes {
			t.Fatalf("%s: got %+v, want %s and %d changes", c.what, status, c.endpoint, c.changes)
		}
	}
	lookup.Region = "RegionTwo"
	if status = statusOf(lookup, status, "http://region.two", now); status.Endpoint != "http://region.two" || status.Changes != 2 {
		t.Errorf("another region: got %+v", status)
	}
	if status = statusOf(lookup, status, "http://moved.two", now.Add(time.Hour)); status.Changes != 3 || !status.LastChangeTime.Equal(&metav1.Time{Time: now.Add(time.Hour)}) {
		t.Errorf("moved in the other region: got %+v", status)
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
		Eventually(endpoint).Should(Equal("http://placement.one:8778"))
		Expect(revision()).To(BeEmpty(), "nothing restarts for the first endpoint")

		c.publish("http://placement.two:8778")
		c.Change(cr, func() { cr.Spec.Scheduler.Replicas = new(int32(2)) }) // any change sends a request at once
		Eventually(endpoint).Should(Equal("http://placement.two:8778"))
		Eventually(revision).Should(Equal("1"))
		Expect(api.Spec.OpenStackServices).To(HaveLen(1))
		cell := cellNamed(cr, cr.Spec.Cells[0])
		Eventually(func() []sharedv1.OpenStackService { c.Read(cell); return cell.Spec.OpenStackServices }).Should(Equal(api.Spec.OpenStackServices))
	})
})
