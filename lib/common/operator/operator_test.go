package operator

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestTrustsPublicCertificatesInAnEmptyImage: the images have no certificates.
func TestTrustsPublicCertificatesInAnEmptyImage(t *testing.T) {
	const alone = "OPERATOR_TEST_ALONE"
	if os.Getenv(alone) == "" { // the roots are read once, when a process starts
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), alone+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if output, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if roots.Equal(x509.NewCertPool()) {
		t.Error("no authority is trusted")
	}
}

// TestWatchedNamespaces: only the empty string means all namespaces.
func TestWatchedNamespaces(t *testing.T) {
	for list, want := range map[string]int{"": 0, "a": 1, " a , b": 2, "a,,b,": 2} {
		watched, err := watchedNamespaces(list)
		if err != nil || len(watched) != want {
			t.Errorf("%q: %d namespaces, %v", list, len(watched), err)
		}
	}
	for _, list := range []string{",", " ", " , "} {
		if _, err := watchedNamespaces(list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
}
