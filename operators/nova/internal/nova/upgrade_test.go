package nova

import (
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/metadata"
)

var _ = Describe("An upgrade to another release of Nova", func() {
	const (
		image26, image27, image27b = "quay.example/openstack/nova:26.2.2", "quay.example/openstack/nova:27", "quay.example/openstack/nova:27.2"
		check                      = "given-cell0-upgrade-check"
		notUpdated                 = "0 of 1 pods updated"
	)
	var (
		c  *cloud
		cr *novav1.Nova
	)
	ready := func(change ...func()) {
		c = newCloud()
		cr = c.givenCompute()
		enginetest.Eventually(GinkgoTB(), "the release is known", func() error {
			if c.Read(cr); cr.Status.Release != "26.2.2" {
				return fmt.Errorf("release %q", cr.Status.Release)
			}
			return nil
		})
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".services VALUES (64, 0, 'nova-compute'), (64, 0, 'nova-compute'), (64, 0, 'nova-conductor')")
		for _, f := range change {
			f()
		}
	}
	to := func(image string) { c.Change(cr, func() { cr.Spec.ContainerImage = image }) }
	pauseBefore := func(phase novav1.UpgradePhase) {
		c.Change(cr, func() { cr.Spec.UpgradePolicy.PauseBefore = phase })
	}
	upgraded := func(version int) {
		mariaDB.Exec(GinkgoTB(), fmt.Sprintf("UPDATE %s.services SET version = %d", c.schema("cell1"), version))
	}
	awaits := func(reason string, parts ...string) {
		GinkgoHelper()
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionUpgraded, reason, parts...)
	}
	done := func() {
		GinkgoHelper()
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(cr.Status.Upgrade).To(BeNil())
	}
	images := func() map[string]string {
		conductor := cellConductorNamed(cr, cr.Spec.Cells[0])
		Expect(c.Read(conductor)).To(BeTrue())
		return map[string]string{
			"superconductor": imageOf(c.superconductor(cr)), "conductor": imageOf(conductor), "compute": c.cell1(cr).Spec.Computes[0].ContainerImage,
		}
	}
	setJob := func(name, failure string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.jobFailures[name] = failure
	}

	It("goes through its phases, and waits for computes and for the migrations of each database", func() {
		ready()
		c.hold(check, true)
		to(image27)
		awaits(engine.ReasonProgressing, check)
		Expect(images()).To(HaveEach(image26), "nothing changes before the check")
		Expect(cr.Status.Upgrade).To(HaveValue(And(HaveField("Phase", novav1.UpgradeChecking), HaveField("From", "26.2.2"), HaveField("To", "27.1.0"))))
		Expect(cr.Status.Upgrade.StartedAt.IsZero()).To(BeFalse())

		c.fail("given-cell1-conductor", conductorv1.ConditionSchemaReady, "db is running")
		c.hold(check, false)
		awaits(novav1.ReasonUpgradingSchemas, "from 26.2.2 to 27.1.0, phase Schemas: ", "db is running")
		Expect(cr.Status.Upgrade.Cells).To(ConsistOf(novav1.CellUpgrade{Name: "cell1", Phase: "Schemas"}))
		Expect(cr.Status.Upgrade.Message).To(ContainSubstring("db is running"))

		c.fail("given-cell1-conductor", conductorv1.ConditionWorkloadReady, notUpdated)
		awaits(novav1.ReasonUpgradingConductors, notUpdated)
		Expect(images()).To(HaveKeyWithValue("compute", image26))
		c.fail("given-scheduler", conductorv1.ConditionWorkloadReady, notUpdated)
		c.repair("given-cell1-conductor")
		awaits(novav1.ReasonUpgradingServices, "NovaScheduler given-scheduler", notUpdated)
		Expect(images()).To(HaveKeyWithValue("compute", image26))
		c.fail("given-cell1-fake", computev1.ConditionWorkloadReady, notUpdated)
		c.repair("given-scheduler")
		awaits(novav1.ReasonUpgradingComputes, "NovaCell given-cell1: ComputesReady is", "NovaCompute given-cell1-fake", notUpdated)
		c.repair("given-cell1-fake")
		awaits(novav1.ReasonUpgradingComputes, "2 of 2 compute services of NovaCell given-cell1 have an older release")
		enginetest.Eventually(GinkgoTB(), "the compute has the image", func() error {
			if image := images()["compute"]; image != image27 {
				return errors.New(image)
			}
			return nil
		})
		Expect(c.triggers(cr)).NotTo(HaveKey(releaseTrigger))
		Expect(c.ended("given-cell0-migrate") + c.ended("given-cell1-migrate")).To(BeZero())

		By("changing something else meanwhile")
		c.Change(cr, func() { cr.Spec.Scheduler.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		enginetest.Eventually(GinkgoTB(), "the scheduler has it", func() error {
			child := schedulerNamed(cr)
			if c.Read(child); child.Spec.CustomServiceConfig == "" {
				return errors.New("not changed")
			}
			return nil
		})
		setJob("given-cell0-migrate", "Some migrations failed unexpectedly")
		upgraded(66)
		awaits(engine.ReasonJobFailed, "given-cell0-migrate", "Some migrations failed unexpectedly")
		Expect(c.triggers(cr)).To(HaveKeyWithValue(releaseTrigger, "27.1.0"))
		conductor := cellConductorNamed(cr, cr.Spec.Cells[0])
		Expect(c.Read(conductor)).To(BeTrue())
		Expect(conductor.Spec.RestartTriggers).To(Equal(map[string]string{releaseTrigger: "27.1.0"}))
		Expect(c.ended("given-cell1-migrate")).To(BeZero(), "the API database is the first")
		Expect(cr.Status.Release).To(Equal("26.2.2"))

		setJob("given-cell1-migrate", "no such column")
		setJob("given-cell0-migrate", "")
		awaits(novav1.ReasonUpgradingMigrations, "NovaCell given-cell1: DataMigrated is JobFailed", "no such column")
		setJob("given-cell1-migrate", "")
		done()
		Expect(cr.Status.Release).To(Equal("27.1.0"))
		Expect(images()).To(HaveEach(image27))
		Expect(c.triggers(cr)).To(HaveKeyWithValue(releaseTrigger, "27.1.0"), "removing it would restart the services again")
		enginetest.Eventually(GinkgoTB(), "the cell has no more migrations", func() error {
			if release := c.cell1(cr).Spec.DataMigrations; release != "" {
				return errors.New(release)
			}
			return nil
		})
	})

	It("has no phases within a release", func() {
		ready()
		to(nextImage)
		done()
		Expect(cr.Status.Release).To(Equal("26.2.3"))
		Expect(images()).To(HaveEach(nextImage))
		Expect(c.ended(check) + c.ended("given-cell0-migrate")).To(BeZero())
		Expect(c.triggers(cr)).NotTo(HaveKey(releaseTrigger))
	})

	It("does not begin before anything runs: a wrong image is corrected", func() {
		c = newCloud()
		cr = c.given()
		cr.Spec.ContainerImage = "quay.example/openstack/nova:31"
		c.fail("given-superconductor", conductorv1.ConditionSchemaReady, "ImagePullBackOff")
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionConductorReady, engine.ReasonWaiting, "ImagePullBackOff")
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionReleaseKnown, metav1.ConditionTrue)
		to(image26)
		c.repair("given-superconductor")
		done()
		Expect(cr.Status.Release).To(Equal("26.2.2"))
		Expect(c.ended(check)).To(BeZero())
	})

	It("is refused if Nova does not support it, and ends when the image is set back", func() {
		ready()
		for image, why := range map[string]string{
			"quay.example/openstack/nova:31": "Nova supports no upgrade from 26.2.2 to 31.0.0: upgrade to release 27 first",
			"quay.example/openstack/nova:22": "its databases cannot go back to 22.4.0",
		} {
			to(image)
			awaits(novav1.ReasonUpgradeRefused, why)
			Expect(images()).To(HaveEach(image26))
		}
		to("quay.example/openstack/nova:broken")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionReleaseKnown, "ImageIncomplete", "prints no release of Nova")
		Expect(images()).To(HaveEach(image26))
		to(image26)
		done()
		Expect(c.ended(check)).To(BeZero())
	})

	It("is blocked by a failed check until this passes, or the image is set back", func() {
		ready()
		setJob(check, "Older than N-1 computes (Failure): computes are too old")
		to(image27)
		awaits(engine.ReasonJobFailed, check, "Older than N-1 computes (Failure): computes are too old")
		Expect(images()).To(HaveEach(image26))
		Expect(cr.Status.Upgrade.Message).To(ContainSubstring("computes are too old"))
		to(image26)
		done()
		Expect(cr.Status.Release).To(Equal("26.2.2"))

		to(image27)
		awaits(engine.ReasonJobFailed, check)
		setJob(check, "")
		awaits(novav1.ReasonUpgradingComputes)
		to(image26)
		awaits(novav1.ReasonUpgradeRefused, "the upgrade to 27.1.0 has changed databases")
		to(image27b)
		awaits(novav1.ReasonUpgradingComputes)
		upgraded(66)
		done()
		Expect(images()).To(HaveEach(image27b))
	})

	It("brings no deleted superconductor back with an image that is refused", func() {
		ready()
		to("quay.example/openstack/nova:31")
		awaits(novav1.ReasonUpgradeRefused, "upgrade to release 27 first")
		c.Delete(c.superconductor(cr), metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionConductorReady, engine.ReasonWaiting, "given-superconductor")
		Consistently(func() bool { return c.Read(superconductorNamed(cr)) }).WithTimeout(time.Second).Should(BeFalse())
		to(image26)
		done()
		Expect(images()).To(HaveEach(image26))
	})

	It("reports the cells while it is refused, and while it is paused before the first change", func() {
		ready()
		reports := func(want metav1.ConditionStatus, count int32) {
			GinkgoHelper()
			enginetest.Eventually(GinkgoTB(), "the status has the state of the cell", func() error {
				if c.Read(cr); cr.Status.Cells[0].Ready != want || cr.Status.ReadyCells != count {
					return fmt.Errorf("%d: %+v", cr.Status.ReadyCells, cr.Status.Cells[0])
				}
				return nil
			})
		}
		to("quay.example/openstack/nova:31")
		awaits(novav1.ReasonUpgradeRefused)
		c.fail("given-cell1-conductor", conductorv1.ConditionWorkloadReady, "no pod is ready")
		reports(metav1.ConditionFalse, 0)
		Expect(cr.Status.Cells[0].Message).To(ContainSubstring("no pod is ready"))

		pauseBefore(novav1.UpgradeSchemas)
		to(image27)
		awaits(novav1.ReasonUpgradePaused, "paused before phase Schemas")
		c.repair("given-cell1-conductor")
		reports(metav1.ConditionTrue, 1)
	})

	DescribeTable("brings deleted services back with the image that still runs", func(phase novav1.UpgradePhase, image, reason string) {
		ready(func() { upgraded(66) })
		pauseBefore(phase)
		to(image)
		awaits(reason)
		services := []client.Object{schedulerNamed(cr), metadata.Named(metadataName(cr)), apiNamed(cr)}
		for _, service := range services {
			Expect(c.Read(service)).To(BeTrue())
			c.Delete(service, metav1.DeletePropagationBackground)
		}
		for _, service := range services {
			before := service.GetUID()
			enginetest.Eventually(GinkgoTB(), service.GetName()+" is back", func() error {
				if !c.Read(service) || service.GetUID() == before {
					return errors.New("gone")
				}
				return nil
			})
			Expect(imageOf(service)).To(Equal(image26), service.GetName())
		}
		awaits(reason)
		pauseBefore("")
		to(image27)
		done()
		for _, service := range services {
			Expect(c.Read(service)).To(BeTrue())
			Expect(imageOf(service)).To(Equal(image27), service.GetName())
		}
	},
		Entry("while it is refused", novav1.UpgradePhase(""), "quay.example/openstack/nova:31", novav1.ReasonUpgradeRefused),
		Entry("while it is paused before Schemas", novav1.UpgradeSchemas, image27, novav1.ReasonUpgradePaused),
		Entry("while it is paused before Conductors", novav1.UpgradeConductors, image27, novav1.ReasonUpgradePaused),
		Entry("while it is paused before Services", novav1.UpgradeServices, image27, novav1.ReasonUpgradePaused),
	)

	It("is refused while a service has an older image of its own", func() {
		ready()
		c.Change(cr, func() { cr.Spec.Cells[0].Conductor.ContainerImage = nextImage })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		upgraded(66)
		to(image27)
		awaits(novav1.ReasonUpgradeRefused, "given-cell1 with image "+nextImage+" would stay at Nova 26.2.2: change or remove their containerImage too")
		Expect(c.ended(check)).To(BeZero())
		Expect(imageOf(c.superconductor(cr))).To(Equal(image26))
		c.Change(cr, func() { cr.Spec.Cells[0].Conductor.ContainerImage = "" })
		done()
		Expect(images()).To(HaveEach(image27))
	})

	It("waits with the check for the database of each cell", func() {
		ready(func() { upgraded(66) })
		database := &corev1.Secret{ObjectMeta: named("cell1-database")}
		Expect(c.Read(database)).To(BeTrue())
		c.Delete(database, metav1.DeletePropagationBackground)
		to(image27)
		awaits(engine.ReasonProgressing, "phase Checking: ", "NovaCell given-cell1: DatabaseReady is ")
		Expect(c.ended(check)).To(BeZero())
		c.Create(&corev1.Secret{ObjectMeta: named("cell1-database"), StringData: databaseSecret(c.schema("cell1"))})
		done()
		Expect(images()).To(HaveEach(image27))
	})

	It("changes the console proxies of cells after the superconductor, and waits for them", func() {
		ready(func() {
			upgraded(66)
			c.Change(cr, func() { cr.Spec.Cells[0].NoVNCProxy = &novav1.CellNoVNCProxy{} })
			enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		})
		imageOfProxy := func() string {
			proxy := &novncproxyv1.NovaNoVNCProxy{ObjectMeta: named("given-cell1-novncproxy")}
			Expect(c.Read(proxy)).To(BeTrue())
			return proxy.Spec.ContainerImage
		}
		pauseBefore(novav1.UpgradeConductors)
		to(image27)
		awaits(novav1.ReasonUpgradePaused, "paused before phase Conductors")
		Expect(imageOfProxy()).To(Equal(image26))
		c.fail("given-cell1-novncproxy", novncproxyv1.ConditionWorkloadReady, notUpdated)
		pauseBefore("")
		awaits(novav1.ReasonUpgradingServices, "NovaCell given-cell1: ConsoleReady is", notUpdated)
		Expect(imageOfProxy()).To(Equal(image27))
		c.repair("given-cell1-novncproxy")
		done()
	})

	It("waits for a cell that leaves the list meanwhile and is not empty", func() {
		ready(func() {
			c.cellDatabase("cell2")
			c.cellBus()
			c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
			enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		})
		to(image27)
		awaits(novav1.ReasonUpgradingComputes)
		cells := slices.Clone(cr.Spec.Cells)
		c.Change(cr, func() { cr.Spec.Cells = cells[:1] })
		upgraded(66)
		awaits(novav1.ReasonUpgradingComputes, "cell cell2 is not in spec.cells and keeps its image")
		c.Change(cr, func() { cr.Spec.Cells = cells })
		done()
		Expect(c.ended("given-cell2-migrate")).To(Equal(1))
	})

	It("pauses before a phase", func() {
		ready(func() { upgraded(66) })
		pauseBefore(novav1.UpgradeSchemas)
		to(image27)
		for i, next := range novav1.UpgradePhases[1:] {
			awaits(novav1.ReasonUpgradePaused, "paused before phase "+string(next))
			Expect(cr.Status.Upgrade.Phase).To(Equal(novav1.UpgradePhases[i]))
			switch next {
			case novav1.UpgradeSchemas:
				Expect(images()).To(HaveEach(image26))
			case novav1.UpgradeConductors:
				Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutHeld))
			case novav1.UpgradeServices:
				scheduler := schedulerNamed(cr)
				Expect(c.Read(scheduler)).To(BeTrue())
				Expect(imageOf(scheduler)).To(Equal(image26))
			case novav1.UpgradeComputes:
				Expect(images()).To(HaveKeyWithValue("compute", image26))
			case novav1.UpgradeRestart:
				Expect(c.triggers(cr)).NotTo(HaveKey(releaseTrigger))
			case novav1.UpgradeMigrations:
				Expect(c.ended("given-cell0-migrate")).To(BeZero())
			}
			if i+2 < len(novav1.UpgradePhases) {
				pauseBefore(novav1.UpgradePhases[i+2])
			}
		}
		pauseBefore("")
		done()
	})

	It("runs each step once although its operator is killed after each write", func() {
		ready(func() { upgraded(66) })
		child := cellConductorNamed(cr, cr.Spec.Cells[0])
		c.Operator.Stop()
		to(image27)
		lives := 0
		for ; cr.Status.Release != "27.1.0"; lives++ {
			Expect(lives).To(BeNumerically("<", 200), enginetest.Conditions(cr))
			c.oneWrite(cr)
			Expect(c.Read(cr)).To(BeTrue())
		}
		AddReportEntry("lives", lives)
		c.Run(Service, cell.Service)
		done()
		Expect(c.Read(child)).To(BeTrue())
		for _, run := range []string{check, "given-cell0-migrate", "given-cell1-migrate"} {
			Expect(c.ended(run)).To(Equal(1), run)
		}
		Expect(c.ended("given-cell0-release")).To(Equal(2))
	})
})
