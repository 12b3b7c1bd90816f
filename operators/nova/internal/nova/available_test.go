package nova

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

const nextImage = "quay.example/openstack/nova:next"

var _ = Describe("Available", func() {
	var (
		c      *cloud
		cr     *novav1.Nova
		losses func() []string
	)
	BeforeEach(func() {
		c = newCloud()
		cr = c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		losses = c.watchLosses(cr)
	})

	upgrade := func() { c.Change(cr, func() { cr.Spec.ContainerImage = nextImage }) }
	image := func() string {
		scheduler := &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}
		Expect(c.Read(scheduler)).To(BeTrue())
		return scheduler.Spec.ContainerImage
	}

	DescribeTable("stays True while old pods of the API answer", func(message string) {
		c.fail("given-api", apiv1.ConditionWorkloadReady, message)
		upgrade()
		enginetest.Eventually(GinkgoTB(), "the API gets its new revision", func() error {
			api := apiNamed(cr)
			if c.Read(api); api.Spec.ContainerImage != nextImage || api.Status.ObservedGeneration != api.Generation {
				return fmt.Errorf("the API has %s", api.Spec.ContainerImage)
			}
			return nil
		})
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionAPIReady, engine.ReasonWaiting, message)
		Expect(losses()).To(BeEmpty())
		c.repair("given-api")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(losses()).To(BeEmpty())
	},
		Entry("during a rollout", "Deployment given-api: 1 of 2 pods updated"),
		Entry("while a new revision crashes", "Deployment given-api: 0 of 2 pods updated"),
	)

	DescribeTable("stays True when a db sync fails, and Mapped too", func(conductor string) {
		child := c.cell1(cr)
		before := image()
		c.fail(conductor, conductorv1.ConditionSchemaReady, "Job db-sync failed: table cells is locked")
		upgrade()
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionSchemaReady, engine.ReasonWaiting, "NovaConductor "+conductor, "table cells is locked")
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".compute_nodes VALUES ('compute-1', 0, 0)")
		enginetest.Eventually(GinkgoTB(), "a new host is discovered", func() error {
			if c.ended("given-cell1-discover") == 0 {
				return fmt.Errorf("hosts: %+v", c.cell1(cr).Status.Hosts)
			}
			return nil
		})
		enginetest.Await(GinkgoTB(), c.Client, child, novav1.ConditionMapped, metav1.ConditionTrue)
		Expect(image()).To(Equal(before), "no service is updated before its databases")
		Expect(losses()).To(BeEmpty())

		c.repair(conductor)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(image()).To(Equal(nextImage))
		Expect(c.ended("given-cell1-map")).To(Equal(1))
		Expect(losses()).To(BeEmpty())
	},
		Entry("of the API database", "given-superconductor"),
		Entry("of the cell", "given-cell1-conductor"),
	)

	It("stays True while new connections of a cell wait for its db sync", func() {
		c.fail("given-cell1-conductor", conductorv1.ConditionSchemaReady, "Job db-sync is running")
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionSchemaReady, engine.ReasonWaiting, "Job db-sync is running")
		bus := &corev1.Secret{ObjectMeta: named("cell1-bus")}
		c.Change(bus, func() { bus.StringData = map[string]string{"password": "another"} })
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionMapped, engine.ReasonWaiting, "stage SchemaReady is not done")
		Expect(c.ended("given-cell1-map")).To(Equal(1))
		Expect(losses()).To(BeEmpty())
		c.repair("given-cell1-conductor")
		enginetest.Eventually(GinkgoTB(), "the cell is mapped again", func() error {
			if ended := c.ended("given-cell1-map"); ended != 2 {
				return fmt.Errorf("mapped %d times", ended)
			}
			return nil
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(losses()).To(BeEmpty())
	})

	It("is False while requests fail, and names the part that failed", func() {
		Expect(c.requests()).To(BeNumerically(">", 0), "the API got requests")
		c.answers(true, http.StatusInternalServerError)
		c.touch(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, "DatabaseUnreachable", "answered HTTP 500 to GET /v2.1/servers", "db.example.org")
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, metav1.ConditionTrue)
		c.answers(false, http.StatusOK)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, "IdentityUnreachable", "HTTP 503")
		c.answers(true, http.StatusOK)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
	})

	It("verifies the certificate of an API that serves TLS", func() {
		authority := certificatetest.NewAuthority(GinkgoTB())
		certificate := c.secure(authority)
		c.Change(cr, func() { cr.Spec.API.TLSSecretRef = &commonv1.SecretReference{Name: certificate.Name} })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, reasonAPIFailed, "TLS certificate refused", "signed by unknown authority")
		c.Change(certificate, func() { certificate.Data["ca.crt"] = authority.PEM })
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		c.Delete(certificate, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, reasonAPIFailed, "TLS certificate refused")
	})

	It("is False while no cell answers", func() {
		c.setCellsDown(true)
		c.answers(true, http.StatusInternalServerError) // so that the next request follows soon
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, "DatabaseUnreachable", "HTTP 500")
		c.answers(true, http.StatusOK)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, "DatabaseUnreachable", "no cell answered")
		c.setCellsDown(false)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
	})

	It("delays an update while the db sync of a cell fails, without a timeout", func() {
		c.Change(cr, func() {
			cr.Spec.Metadata.Mode = novav1.MetadataGlobalAndPerCell
			cr.Spec.Cells[0].NoVNCProxy = &novav1.CellNoVNCProxy{}
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.fail("given-cell1-conductor", conductorv1.ConditionSchemaReady, "Job db-sync failed: table cells is locked")
		before := image()
		c.longReady(superconductorNamed(cr), conductorv1.ConditionSchemaReady)
		upgrade()
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "NovaCell given-cell1: SchemaReady")
		c.longReady(superconductorNamed(cr), conductorv1.ConditionSchemaReady)
		c.touch(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "the services read the database of NovaCell given-cell1")
		Expect(image()).To(Equal(before))
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutHeld), "it writes to the databases of the cells")
		kept := "keeps image " + before + " until stage SchemaReady is done"
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionConsoleReady, engine.ReasonWaiting, "given-cell1-novncproxy "+kept)
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionMetadataReady, engine.ReasonWaiting, "given-cell1-metadata "+kept)
		c.repair("given-cell1-conductor")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(image()).To(Equal(nextImage))
		console := &novncproxyv1.NovaNoVNCProxy{ObjectMeta: named("given-cell1-novncproxy")}
		Expect(c.Read(console)).To(BeTrue())
		Expect(console.Spec.ContainerImage).To(Equal(nextImage))
	})

	It("has an update wait for a cell that is removed from the list, but not another change", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		before := image()
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "cell cell2 is not in spec.cells")
		c.Change(cr, func() { cr.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionAPIReady, metav1.ConditionTrue)
		upgrade()
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "cell cell2 is not in spec.cells and keeps its image")
		enginetest.Eventually(GinkgoTB(), "the superconductor is held", func() error {
			if conductor := c.superconductor(cr); conductor.Spec.ContainerImage != nextImage || conductor.Spec.Rollout != commonv1.RolloutHeld {
				return fmt.Errorf("%s, %s", conductor.Spec.ContainerImage, conductor.Spec.Rollout)
			}
			return nil
		})
		Expect(image()).To(Equal(before))
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(image()).To(Equal(nextImage))
	})

	It("is False when no pod of the API is ready", func() {
		c.fail("given-api", apiv1.ConditionWorkloadReady, "Deployment given-api: 0 of 1 available")
		c.scaleAPI(0)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, engine.ReasonWaiting, "NovaAPI given-api has no ready pod: Deployment given-api: 0 of 1 available")
		c.scaleAPI(1)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		Eventually(losses).WithTimeout(2*time.Minute).ShouldNot(BeEmpty(), "the watch reports it")
	})

	It("depends on the answers of a paused API, whose pods nobody counts", func() {
		c.scaleAPI(0)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, engine.ReasonWaiting, "NovaAPI given-api has no ready pod")
		api := apiNamed(cr)
		c.Change(api, func() { api.Spec.Paused = true })
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
	})
})

// watchLosses watches a Nova. The function that it returns lists the conditions of each
// status since then that was not available. A fake that has not answered in time is no loss: the
// machine is busy.
func (c *cloud) watchLosses(cr *novav1.Nova) func() []string {
	watching, err := client.NewWithWatch(enginetest.Config(GinkgoTB()), client.Options{Scheme: enginetest.Scheme(GinkgoTB(), kinds...)})
	Expect(err).NotTo(HaveOccurred())
	w, err := watching.Watch(context.Background(), &novav1.NovaList{}, client.InNamespace(c.Namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	name := cr.Name
	var mu sync.Mutex
	var losses []string
	go func() {
		for event := range w.ResultChan() {
			nova, ok := event.Object.(*novav1.Nova)
			if !ok || nova.Name != name || nova.DeletionTimestamp != nil {
				continue
			}
			available := meta.FindStatusCondition(nova.Status.Conditions, commonv1.ConditionAvailable)
			if available == nil || available.Status != metav1.ConditionTrue && !strings.Contains(available.Message, "timed out") {
				mu.Lock()
				losses = append(losses, enginetest.Conditions(nova))
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return losses
	}
}

// touch changes an annotation of the object, so that its operator reconciles it.
func (c *cloud) touch(obj client.Object) {
	c.Change(obj, func() { obj.SetAnnotations(map[string]string{"touched": fmt.Sprint(time.Now().UnixNano())}) })
}

// longReady changes the transition time of a True condition to ten minutes ago.
func (c *cloud) longReady(obj engine.Object, condition string) {
	enginetest.Eventually(GinkgoTB(), "the condition is True for the newest generation", func() error {
		if !c.Read(obj) {
			return errors.New("the object does not exist")
		}
		before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
		known := meta.FindStatusCondition(obj.Common().Conditions, condition)
		if known == nil || known.Status != metav1.ConditionTrue || known.ObservedGeneration != obj.GetGeneration() {
			return fmt.Errorf("%s is %+v", condition, known)
		}
		known.LastTransitionTime = metav1.NewTime(time.Now().Add(-10 * time.Minute))
		return c.Client.Status().Patch(context.Background(), obj, client.MergeFrom(before))
	})
}
