// Package e2e tests the operators on a cluster with a real kubelet, MariaDB,
// RabbitMQ, Keystone, Placement and Nova: the one that `make demo` left, with
// the ControlPlane demo in namespace openstack.
//
// Each top-level container works in namespaces of its own, so that Ginkgo runs
// them side by side; those marked Serial come after all others.
package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Nova on a real cluster")
}

// patience is how long anything may take that is not waiting by design; several
// deployments share two cores.
const patience = 10 * time.Minute

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	connect()
	removeLeftovers(ctx)
	deployOperators(ctx, sharedOperators)
	Expect(os.MkdirAll(logFolder(), 0o700)).To(Succeed())
	collectLogs()
	DeferCleanup(expectRightsUsed)
}, func() {
	connect()
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultConsistentlyDuration(5 * time.Second)
	SetDefaultConsistentlyPollingInterval(250 * time.Millisecond)
})

var _ = SynchronizedAfterSuite(func() {}, func(ctx SpecContext) {
	if os.Getenv("E2E_KEEP") == "" {
		removeLeftovers(ctx)
	}
})
