package nova

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// TestNextUpkeep: a run that begins late does not move the next one.
func TestNextUpkeep(t *testing.T) {
	for began, want := range map[string]string{
		"2026-01-31T02:59:59Z": "2026-01-31T03:00:00Z",
		"2026-01-31T03:00:00Z": "2026-02-01T03:00:00Z",
		"2026-01-31T23:10:00Z": "2026-02-01T03:00:00Z",
		"":                     "0001-01-01T00:00:00Z", // at once
	} {
		cr := &novav1.Nova{}
		cr.Spec.Upkeep = &novav1.Upkeep{DailyAt: "03:00"}
		last := &novav1.UpkeepStatus{}
		if at, err := time.Parse(time.RFC3339, began); err == nil {
			last.LastRunAt = &metav1.Time{Time: at}
		}
		if got := nextUpkeep(cr, last).Format(time.RFC3339); got != want {
			t.Errorf("after %s: got %s, want %s", began, got, want)
		}
	}
}

var _ = Describe("The upkeep of the databases", func() {
	const run = "given-cell0-upkeep-archive"
	var (
		c  *cloud
		cr *novav1.Nova
	)
	message := func() string {
		if condition := meta.FindStatusCondition(cr.Status.Conditions, novav1.ConditionUpkeepDone); condition != nil {
			return string(condition.Status) + " " + condition.Message
		}
		return ""
	}
	jobs := func() int {
		var all batchv1.JobList
		Expect(c.Client.List(context.Background(), &all, client.InNamespace(c.Namespace))).To(Succeed())
		return len(slices.DeleteFunc(all.Items, func(job batchv1.Job) bool { return !strings.HasPrefix(job.Name, run+"-") }))
	}
	awaitRun := func(n int) {
		GinkgoHelper()
		enginetest.Eventually(GinkgoTB(), fmt.Sprintf("run %d is in the status", n), func() error {
			if c.Read(cr); c.ended(run) != n || cr.Status.Upkeep == nil || cr.Status.Upkeep.LastRunAt == nil {
				return fmt.Errorf("%d runs, status %+v, %s", c.ended(run), cr.Status.Upkeep, message())
			}
			return nil
		})
	}
	yesterday := func() {
		c.ChangeStatus(cr, func() { cr.Status.Upkeep.LastRunAt = &metav1.Time{Time: time.Now().Add(-25 * time.Hour)} })
	}
	fail := func(why string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.jobFailures[run] = why
	}
	BeforeEach(func() {
		c = newCloud()
		cr = c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})

	It("runs when it is set, and every day, and leaves no Job", func() {
		Expect(message()).To(Equal("True "))
		c.Change(cr, func() { cr.Spec.Upkeep = &novav1.Upkeep{} })
		awaitRun(1)
		Expect(cr.Spec.Upkeep.DailyAt).To(Equal("03:00"))
		Expect(cr.Status.Upkeep.Result).To(Equal("archived 12 rows, 3 s"))
		Expect(time.Since(cr.Status.Upkeep.LastRunAt.Time)).To(BeNumerically("<", 5*time.Minute))
		enginetest.Eventually(GinkgoTB(), "the Job is deleted, and the next run is known", func() error {
			next := nextUpkeep(cr, cr.Status.Upkeep).Format(time.RFC3339)
			if c.Read(cr); message() != "True archived 12 rows, 3 s; the next run begins at "+next || jobs() > 0 {
				return fmt.Errorf("%s, %d Jobs", message(), jobs())
			}
			return nil
		})
		yesterday()
		awaitRun(2)
		c.Change(cr, func() { cr.Spec.Upkeep = nil })
		enginetest.Eventually(GinkgoTB(), "nothing is left of it", func() error {
			if c.Read(cr); cr.Status.Upkeep != nil || message() != "True " || jobs() > 0 {
				return errors.New(message())
			}
			return nil
		})
		Expect(c.ended(run)).To(Equal(2))
	})

	It("runs again after a failure, which the condition shows, and the Nova stays Ready", func() {
		fail("DBConnectionError: cell1 does not answer")
		c.Change(cr, func() { cr.Spec.Upkeep = &novav1.Upkeep{} })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionUpkeepDone, engine.ReasonJobFailed, run, "DBConnectionError: cell1 does not answer")
		Expect(meta.IsStatusConditionTrue(cr.Status.Conditions, commonv1.ConditionReady)).To(BeTrue(), enginetest.Conditions(cr))
		Expect(cr.Status.Upkeep).To(BeNil())
		fail("")
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionUpkeepDone, metav1.ConditionTrue)
		Expect(cr.Status.Upkeep.Result).To(Equal("archived 12 rows, 3 s"))
	})

	It("does not run while another release is rolled out", func() {
		c.Change(cr, func() { cr.Spec.Upkeep = &novav1.Upkeep{} })
		awaitRun(1)
		c.hold(run, true)
		yesterday()
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionUpkeepDone, engine.ReasonProgressing, run)
		c.Change(cr, func() {
			cr.Spec.ContainerImage = "quay.example/openstack/nova:27"
			cr.Spec.UpgradePolicy.PauseBefore = novav1.UpgradeConductors
		})
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionUpgraded, novav1.ReasonUpgradePaused)
		enginetest.Eventually(GinkgoTB(), "the run is ended", func() error {
			if c.Read(cr); message() != "True no run begins before the upgrade to quay.example/openstack/nova:27 is complete" || jobs() > 0 {
				return errors.New(message())
			}
			return nil
		})
		c.hold(run, false)
		c.Change(cr, func() { cr.Spec.UpgradePolicy.PauseBefore = "" })
		awaitRun(2)
		Expect(cr.Status.Release).To(Equal("27.1.0"))
	})
})
