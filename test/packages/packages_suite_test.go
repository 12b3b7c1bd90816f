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
	olmLabel       = "olm"
)

// patience is the time limit of everything that does not wait by design.
const patience = 5 * time.Minute

// imagePrefix is that of the images of this suite. The release first is of an earlier commit,
// and second is of this tree.
var (
	imagePrefix   string
	first, second release
)

var _ = BeforeSuite(func(ctx SpecContext) {
	imagePrefix = serveRegistry()
	first = makeRelease(ctx, imagePrefix, formerTree(ctx), nil)
	second = makeRelease(ctx, imagePrefix, currentTree(ctx), &first)
	if Label(olmLabel).MatchesLabelFilter(GinkgoLabelFilter()) {
		buildPrograms()
	}
})

// Each installation removes its operators and its ControlPlane at its end, so that the next one
// finds a cluster without them. MariaDB, RabbitMQ, Keystone and Placement stay from Helm to OLM.
// The demo and the suite of test/e2e show a ControlPlane with the operators of dist/install.yaml.
var _ = Describe("A release", func() {
	Describe("with kubectl", Label("install"), Ordered, withKubectl)
	Describe("with Helm", Label("helm"), Ordered, withHelm)
	Describe("with OLM", Label(olmLabel), Ordered, withOLM)
})

func TestPackages(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(time.Second)
	RunSpecs(t, "Operators of a release")
}
