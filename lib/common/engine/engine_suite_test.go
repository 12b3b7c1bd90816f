package engine_test

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/gomega/format"
)

// TestMain runs the tests in parallel, because they mostly wait for the API server.
func TestMain(m *testing.M) {
	flag.Parse()
	format.MaxLength = 2000
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) //nolint:forbidigo // the test itself is wrong
	}
	os.Exit(m.Run())
}
