// Package e2e tests the operators on the cluster of `make demo`, with a real kubelet,
// MariaDB, RabbitMQ, Keystone, Placement and Nova, and the ControlPlane demo in namespace
// openstack.
//
// Each top-level container has its own namespaces, so that Ginkgo can run containers in
// parallel. Containers marked Serial run after all others.
package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestE2E(t *testing.T) {
	RegisterTestingT(t)
	readKinds() // the containers name objects before any spec runs
	RegisterFailHandler(Fail)
	RunSpecs(t, "Nova on a real cluster")
}

// patience is the time limit of everything that does not wait by design. It is long,
// because several deployments share two cores, and longer than the grace period of a console
// proxy, 10 minutes.
const patience = 12 * time.Minute

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
