// Package packages tests the installations of a release, one after the other, on a cluster
// of tools/cluster: kubectl with its manifests, the real Helm with its charts, and the real
// OLM with its catalog. With OLM, a pod serves the catalog, Jobs unpack the bundle images,
// and the operators run with the rights that OLM gives them.
package packages

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	systemNamespace  = "asterism-system"
	storageNamespace = "asterism-storage"
	// cloudNamespace is the namespace of the demo's ControlPlane.
	cloudNamespace = "openstack"
	olmNamespace   = "olm"
)

// patience is the time limit of everything that does not wait by design.
const patience = 10 * time.Minute

// imagePrefix is that of the images of this suite, and first and second are the releases
// 0.1.0 and 0.2.0 in it.
var (
	imagePrefix   string
	first, second release
)

var _ = BeforeSuite(func(ctx SpecContext) {
	readOperators()
	imagePrefix = serveRegistry()
	pushOperands(imagePrefix)
	first = makeRelease(ctx, imagePrefix, "0.1.0", nil)
	second = makeRelease(ctx, imagePrefix, "0.2.0", &first)
})

// Each installation removes its objects at its end, so that the next one finds a cluster
// without them.
var _ = Describe("A release", func() {
	Describe("with kubectl", Label("install"), Ordered, withKubectl)
	Describe("with Helm", Label("helm"), Ordered, withHelm)
	Describe("with OLM", Label("olm"), Ordered, withOLM)
})

func TestPackages(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(time.Second)
	RunSpecs(t, "Operators of a release")
}
