// Package packages tests a release with the real OLM and the real Helm, on a cluster of
// tools/cluster. With OLM, a pod serves the catalog, Jobs unpack the bundle images, and the
// operators run with the rights that OLM gives them.
package packages

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	systemNamespace = "asterism-system"
	// cloudNamespace is the namespace of the demo's ControlPlane.
	cloudNamespace = "openstack"
	olmNamespace   = "olm"
)

// patience is the time limit of everything that does not wait by design.
const patience = 10 * time.Minute

func TestPackages(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(time.Second)
	RunSpecs(t, "Operators of a release")
}
