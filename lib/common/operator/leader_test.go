package operator_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
	"asterism.dev/lib/common/operator"
)

const leaseName = "example.asterism.dev"

// TestLeadership: one of two replicas leads, and the other one after its end. A container that
// has been killed leaves its lease, which is the next container's.
func TestLeadership(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(2 * time.Minute) // less than the lease
	namespace := enginetest.Namespace(t)
	c := enginetest.Client(t, widget.AddToScheme)
	t.Setenv("POD_NAMESPACE", namespace)
	t.Setenv("WATCH_NAMESPACE", namespace)

	g.Expect(c.Create(t.Context(), leaseOf("killed", namespace))).To(Succeed())
	killed := startReplica(t, "killed")
	g.Eventually(killed.leads).Should(BeClosed(), "a restarted container waits for its own lease")

	standby := startReplica(t, "standby")
	g.Eventually(standby.looks.Load).Should(BeNumerically(">=", 2), "looks at the lease")
	g.Expect(standby.leads).NotTo(BeClosed(), "two replicas lead")
	killed.stop()
	// The lease would last longer than that after the last look of the other replica.
	g.Eventually(standby.leads, 100*time.Second).Should(BeClosed(), "nobody leads after the leader's end")
}

// leaseOf is the lease that a killed pod leaves.
func leaseOf(pod, namespace string) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Namespace: namespace}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &pod, LeaseDurationSeconds: new(int32(137)),
		AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
	}}
}

// replica is one pod of an operator.
type replica struct {
	leads chan struct{} // closed
	looks atomic.Int32  // at the lease
	stop  func()
}

func startReplica(t *testing.T, pod string) *replica {
	t.Helper()
	t.Setenv("POD_NAME", pod)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := &replica{leads: make(chan struct{})}
	config := enginetest.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/leases/"+leaseName) {
				r.looks.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	elected, err := operator.Elected(leaseName, config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	go func() { ended <- elected(ctx, r) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil // for a second call
	}
	t.Cleanup(r.stop)
	return r
}

func (r *replica) Kind() client.Object { return nil }

func (r *replica) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(r.leads)
		<-ctx.Done()
		return nil
	}))
}
