package packages

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// awaitPrograms waits until the programs of OLM are built.
var awaitPrograms = func(context.Context) { Fail("buildPrograms has not run") }

// buildPrograms builds the programs of OLM while other specs wait for the cluster. With a low
// priority, it does not delay them.
func buildPrograms() {
	ctx, cancel := context.WithCancel(context.Background())
	build := exec.CommandContext(ctx, "nice", "make", "--no-print-directory", "-C", repository(), "program-olm")
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGTERM) } // also the compilers
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		out, err := build.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("make program-olm: %w\n%s", err, out)
		}
		ended <- err
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	awaitPrograms = func(ctx context.Context) {
		GinkgoHelper()
		var err error
		Eventually(ended).WithContext(ctx).WithTimeout(15 * time.Minute).Should(Receive(&err)) // from empty caches, for olm-e2e alone
		Expect(err).NotTo(HaveOccurred())
	}
}
