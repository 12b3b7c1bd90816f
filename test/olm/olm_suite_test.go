// Package olm tests the bundles and the catalog with the real OLM, on a cluster of
// tools/cluster: the catalog is served by a pod, Jobs unpack the bundle images, and the
// operators run with the rights that OLM gives them.
package olm

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

func TestOLM(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(time.Second)
	RunSpecs(t, "Operators installed by OLM")
}
