package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"asterism.dev/lib/common/certificatetest"
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

// optionsOf returns the manager's options of an operator with these arguments.
func optionsOf(t *testing.T, arguments ...string) *ctrl.Options {
	t.Helper()
	set := flag.NewFlagSet("example", flag.ContinueOnError)
	options, _ := flags(set, "example")
	if err := set.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return options
}

// TestCertificateOfTheMetrics: without --metrics-cert-path it is self-signed.
func TestCertificateOfTheMetrics(t *testing.T) {
	folder := t.TempDir()
	signer := certificatetest.NewAuthority(t)
	certificate, key := signer.Sign(t, time.Now().Add(time.Hour), "127.0.0.1")
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for about, test := range map[string]struct {
		arguments []string
		given     bool
	}{
		"default":                       {},
		"the folder of a certificate":   {[]string{"--metrics-cert-path=" + folder}, true},
		"a folder without certificates": {[]string{"--metrics-cert-path=" + t.TempDir()}, false},
	} {
		options := optionsOf(t, append(test.arguments, "--metrics-bind-address=127.0.0.1:0")...)
		if err := connect(t, options.Metrics, signer.PEM); (err == nil) != test.given {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// connect starts a metrics server, and returns why a client that trusts an authority refuses its
// certificate.
func connect(t *testing.T, options metricsserver.Options, authority []byte) (refused error) {
	t.Helper()
	server, err := metricsserver.NewServer(options, &rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		address := server.(interface{ GetBindAddr() string }).GetBindAddr() //nolint:forcetypeassert // it has this method for tests
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trusted})
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			refused = err
			return true, nil
		}
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, connection.Close()
	}); err != nil {
		t.Fatal(err)
	}
	return refused
}

// TestLeaderElectionCanBeSwitchedOff by --leader-elect=false, also in a pod.
func TestLeaderElectionCanBeSwitchedOff(t *testing.T) {
	t.Setenv(podNamespace, "asterism-system")
	t.Setenv(podName, "example-0")
	for about, test := range map[string]struct {
		arguments []string
		lease     string
	}{
		"default":              {nil, "asterism-system/example.asterism.dev"},
		"--leader-elect":       {[]string{"--leader-elect"}, "asterism-system/example.asterism.dev"},
		"--leader-elect=false": {[]string{"--leader-elect=false"}, ""},
	} {
		options := optionsOf(t, test.arguments...)
		if err := elect(&rest.Config{}, options); err != nil {
			t.Fatal(err)
		}
		lease := ""
		if lock, ok := options.LeaderElectionResourceLockInterface.(*resourcelock.LeaseLock); ok {
			lease = lock.Describe()
		}
		if lease != test.lease || options.LeaderElection != (test.lease != "") {
			t.Errorf("%s: leader election is %t with lease %q, want %q", about, options.LeaderElection, lease, test.lease)
		}
	}
}
