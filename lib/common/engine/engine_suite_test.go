package engine_test

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/gomega/format"
)

// TestMain lets the tests wait at the same time: they wait for the API server
// far more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	format.MaxLength = 2000
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) //nolint:forbidigo // the test itself is wrong
	}
	os.Exit(m.Run())
}
