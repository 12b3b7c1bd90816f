package nova

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
	"asterism.dev/lib/registration/registrationtest"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/metadata"
)

var _ = Describe("A cell of a Nova", func() {
	var (
		c       *cloud
		cr      *novav1.Nova
		servers int
	)
	BeforeEach(func() {
		c, servers = newCloud(), 0
		cr = c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})
	inAPI := func(statement string) {
		mariaDB.Exec(GinkgoTB(), fmt.Sprintf(statement, c.api+".cell_mappings", uuids["cell1"]))
	}
	awaitMappings := func(want int, disabled string) {
		GinkgoHelper()
		enginetest.Eventually(GinkgoTB(), "the API database has the mapping", func() error {
			rows := mariaDB.Column(GinkgoTB(), "SELECT disabled FROM "+c.api+".cell_mappings ORDER BY uuid")
			if ended := c.ended("given-cell1-map"); ended < want || len(rows) == 0 || rows[0] != disabled {
				return fmt.Errorf("%d Jobs, disabled: %v", ended, rows)
			}
			return nil
		})
	}
	scheduler := func() *schedulerv1.NovaScheduler {
		child := schedulerNamed(cr)
		Expect(c.Read(child)).To(BeTrue())
		return child
	}

	// awaitCount waits until the operator has counted after the last change of the mapping.
	awaitCount := func() {
		GinkgoHelper()
		servers++
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".instances VALUES (NULL, 0)")
		enginetest.Eventually(GinkgoTB(), "the server is counted", func() error {
			if counted := ptr.Deref(c.cell1(cr).Status.Servers, 0); int(counted) != servers {
				return fmt.Errorf("servers: %d, want %d", counted, servers)
			}
			return nil
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	}

	It("gets no new servers while its scheduling is disabled, whatever nova-manage does", func() {
		Expect(scheduler().Spec.RestartTriggers["cell1"]).NotTo(HaveSuffix("-disabled"))
		c.Change(cr, func() { cr.Spec.Cells[0].Scheduling = novav1.SchedulingDisabled })
		awaitMappings(2, "1")
		enginetest.Eventually(GinkgoTB(), "the scheduler restarts", func() error {
			if trigger := scheduler().Spec.RestartTriggers["cell1"]; !strings.HasSuffix(trigger, "-disabled") {
				return fmt.Errorf("trigger %s", trigger)
			}
			return nil
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.cell1(cr).Status.Scheduling).To(Equal(novav1.SchedulingDisabled))
		Expect(c.superconductor(cr).Spec.RestartTriggers["cell1"]).NotTo(HaveSuffix("-disabled"), "only the scheduler reads it")

		for range 2 {
			ended := c.ended("given-cell1-map")
			inAPI("UPDATE %s SET disabled = FALSE WHERE uuid = '%s'")
			awaitMappings(ended+1, "1")
			awaitCount()
			Expect(c.ended("given-cell1-map")).To(Equal(ended+1), "one Job for each change")
		}
		Expect(c.ended("given-cell1-map")).To(Equal(4))
	})

	It("is mapped again after its mapping was deleted", func() {
		ended := c.ended("given-cell1-map")
		inAPI("DELETE FROM %s WHERE uuid = '%s'")
		awaitMappings(ended+1, "0")
		awaitCount()
		Expect(c.ended("given-cell1-map")).To(Equal(ended + 1))
		enginetest.Eventually(GinkgoTB(), "the NovaCell reports its mapping", func() error {
			if c.cell1(cr).Status.Mapping == nil {
				return errors.New("no mapping")
			}
			return nil
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})

	It("moves to another database when this is a copy, and to another message bus", func() {
		child, former := c.cell1(cr), c.schema("cell1")
		Expect(child.Status.Database).To(HaveSuffix("/" + former))
		inAPI("UPDATE %s SET id = 1, name = 'cell1' WHERE uuid = '%s'")
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+former+".instances VALUES ('compute-0', 0)", "INSERT INTO "+c.api+".instance_mappings VALUES (1, FALSE)")
		enginetest.Eventually(GinkgoTB(), "the server is counted", func() error {
			if servers := c.cell1(cr).Status.Servers; servers == nil || *servers != 1 {
				return fmt.Errorf("servers: %v", servers)
			}
			return nil
		})
		first, copied := c.triggers(cr)["cell1"], former+"_copy"
		mariaDB.Exec(GinkgoTB(), "CREATE DATABASE "+copied)
		c.Create(&corev1.Secret{ObjectMeta: named("cell1-copy"), StringData: databaseSecret(copied)})
		conductor := &conductorv1.NovaConductor{ObjectMeta: named("given-cell1-conductor")}
		c.Change(cr, func() { cr.Spec.Cells[0].Database.ConnectionSecretRef.Name = "cell1-copy" })
		moves := "the cell moves from database " + child.Status.Database + " to "
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseNotCopied", moves, copied, "has no tables of Nova")
		syncCell(copied)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseNotCopied", "it has 0 servers, but the cell has 1")
		Expect(c.Read(conductor)).To(BeTrue())
		Expect(conductor.Spec.DatabaseSecretRef.Name).To(Equal("cell1-database"), "no schema is synchronized in an empty database")
		Expect(c.triggers(cr)["cell1"]).To(Equal(first))

		By("accepting the copy after its missing server was deleted in the former database")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.api+".instance_mappings SET queued_for_delete = TRUE", "INSERT INTO "+copied+".compute_nodes VALUES ('compute-0', 1, 0)")
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return triggers["cell1"] != first })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.Read(conductor)).To(BeTrue())
		Expect(conductor.Spec.DatabaseSecretRef.Name).To(Equal("cell1-copy"))
		child = c.cell1(cr)
		Expect(child.Status).To(And(HaveField("Database", HaveSuffix("/"+copied)), HaveField("UUID", uuids["cell1"])))

		second := c.triggers(cr)["cell1"]
		c.cellBus()
		c.Change(cr, func() { cr.Spec.Cells[0].MessageBus.ConnectionSecretRef.Name = "cell2-bus" })
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return triggers["cell1"] != second })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.Read(conductor)).To(BeTrue())
		Expect(conductor.Spec.MessageBusSecretRef.Name).To(Equal("cell2-bus"))
		compute := &corev1.Secret{ObjectMeta: named("given-cell1-compute-config")}
		Expect(c.Read(compute)).To(BeTrue())
		Expect(string(compute.Data["50-connections.conf"])).To(And(ContainSubstring("rabbit://cell2:"), Not(ContainSubstring("nova_cell1:"))))
	})

	It("that another tool has mapped without a name is found by its UUID, and its database is not mapped twice", func() {
		const unnamed = "bd0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a44"
		c.cellDatabase("cell2")
		c.cellBus()
		at := func(address string) {
			mariaDB.Exec(GinkgoTB(), "REPLACE INTO "+c.api+".cell_mappings (uuid, disabled, id, database_connection) VALUES ('"+unnamed+"', FALSE, 2, "+
				"'mysql+pymysql://nova:s3cret@"+address+"/"+c.schema("cell2")+"?charset=utf8')")
		}
		at(mariaDB.Host + ":" + mariaDB.Port)
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseInUse", "is the database of the cell with UUID "+unnamed)

		By("finding its servers under another address of the database")
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell2")+".instances (deleted, uuid) VALUES (0, 'server')",
			"INSERT INTO "+c.api+".instance_mappings (cell_id, instance_uuid) VALUES (2, 'server')")
		at("db.example.org:3306")
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseInUse", "has instances of the cell with UUID "+unnamed)

		c.Change(cr, func() { cr.Spec.Cells[1].UUID = uuids["cell10"] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "CellNotFound", uuids["cell10"])
		c.Change(cr, func() { cr.Spec.Cells[1].UUID = unnamed })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.cell(cr, "cell2").Status.UUID).To(Equal(unnamed))
		Expect(mariaDB.Column(GinkgoTB(), "SELECT uuid FROM "+c.api+".cell_mappings ORDER BY id")).To(Equal([]string{uuids["cell1"], unnamed}))
	})

	It("that is removed from the list runs until it has no host and no server, and its computes leave with it", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		another, compute := anotherCell(), &computev1.NovaCompute{ObjectMeta: named("given-cell2-fake")}
		another.Computes = []novav1.Compute{{Name: "fake", ComputeSettings: sharedv1.ComputeSettings{Driver: sharedv1.ComputeFake}}}
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell2")+".compute_nodes VALUES ('given-cell2-fake', 0, 0)")
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, another) })
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return len(triggers) == 2 })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell2")+".instances VALUES ('compute-0', 0)")
		enginetest.Eventually(GinkgoTB(), "the server is counted", func() error {
			if servers := c.cell(cr, "cell2").Status.Servers; servers == nil || *servers != 1 {
				return fmt.Errorf("servers: %v", servers)
			}
			return nil
		})

		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting,
			"cell cell2 is not in spec.cells, but has compute hosts: 2 (compute-0, given-cell2-fake), servers: 1")
		Expect(c.cell(cr, "cell2").Spec.Computes).To(HaveLen(1), "a removal by mistake changes nothing")
		Expect(c.Read(compute)).To(BeTrue())
		Expect(c.cell(cr, "cell2").DeletionTimestamp).To(BeNil())
		Expect(c.triggers(cr)).To(HaveLen(2), "the services still use the cell")
		Expect(cr.Status.Cells).To(HaveLen(2))
		Expect(cr.Status.DesiredCells).To(BeEquivalentTo(1))

		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1 WHERE host = 'compute-0'")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "cell cell2 is not in spec.cells, but has compute hosts: 1 (given-cell2-fake), servers: 1")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".instances SET deleted = 1")
		enginetest.AwaitGone(GinkgoTB(), c.Client, compute)
		Expect(c.cell(cr, "cell2").DeletionTimestamp).To(BeNil(), "its host is still in the database")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1")
		enginetest.AwaitGone(GinkgoTB(), c.Client, &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}})
		Expect(c.ended("given-cell2-unmap")).To(Equal(1))
		Expect(mariaDB.Column(GinkgoTB(), "SELECT uuid FROM "+c.api+".cell_mappings")).To(Equal([]string{uuids["cell1"]}))
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return len(triggers) == 1 })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(cr.Status.Cells).To(HaveLen(1))
		Expect(databases(c.schema("cell2"))).NotTo(BeEmpty(), "an administrator has created the database")
	})

	It("is not removed if a server arrives at the last moment", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		child := c.cell(cr, "cell2")
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		c.Delete(child, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty", "Emptied: the cell has compute hosts: 1 (compute-0)")
		Expect(c.Read(&conductorv1.NovaConductor{ObjectMeta: named(child.Name + "-conductor")})).To(BeTrue(), "the cell works")
		Expect(c.ended("given-cell2-unmap")).To(BeZero())
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1")
		enginetest.AwaitGone(GinkgoTB(), c.Client, child)
		Expect(c.ended("given-cell2-unmap")).To(Equal(1))
	})

	It("does not use the database or the message bus of another cell, and is not removed while its database moves", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		use := func(secret string) {
			c.Change(cr, func() { cr.Spec.Cells[1].Database.ConnectionSecretRef.Name = secret })
		}
		c.Create(&corev1.Secret{ObjectMeta: named("same"), StringData: databaseSecret(c.schema("cell1"))})
		another := anotherCell()
		another.Database.ConnectionSecretRef.Name = "same"
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, another) })
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseInUse", c.schema("cell1")+" is in use by NovaCell given-cell1")
		use("cell2-database")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)

		c.Create(&corev1.Secret{ObjectMeta: named("same-bus"), StringData: map[string]string{"hostname": "mq.example.org", "user": "cell2", "password": "word", "vhost": "cell1"}})
		c.Change(cr, func() { cr.Spec.Cells[1].MessageBus.ConnectionSecretRef.Name = "same-bus" })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionMessageBusReady, "MessageBusInUse", "mq.example.org:5672/cell1 is in use by NovaCell given-cell1")
		c.Change(cr, func() { cr.Spec.Cells[1].MessageBus.ConnectionSecretRef.Name = "cell2-bus" })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)

		c.Create(&corev1.Secret{ObjectMeta: named("nowhere"), StringData: databaseSecret(c.schema("nowhere"))})
		use("nowhere")
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseNotCopied")
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "cell cell2 is not in spec.cells, but its database moves to ", c.schema("nowhere"))
		Expect(c.cell(cr, "cell2").DeletionTimestamp).To(BeNil())

		c.Delete(child, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "DatabaseNotCopied", "Emptied: the cell is deleted while its database moves from ")
		c.Change(child, func() { child.Spec.Database.ConnectionSecretRef.Name = "cell2-database" })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty", "Emptied: the cell has compute hosts: 1 (compute-0)")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1")
		enginetest.AwaitGone(GinkgoTB(), c.Client, child)
	})

	DescribeTable("shares nothing with another cell that is as new, in whatever order both come", func(condition, reason, secret, key string) {
		names := []string{"cell2", "cell10", "cell11"}
		for _, name := range names {
			c.cellDatabase(name)
			c.busOf(name)
			c.hold("given-"+name+"-map", true)
		}
		add := func(added ...novav1.CellName) {
			c.Change(cr, func() {
				for _, name := range added {
					cr.Spec.Cells = append(cr.Spec.Cells, givenCell(name))
				}
			})
		}
		value := map[string]string{"database": c.schema("cell2"), "vhost": "cell2"}[key]
		for _, name := range names {
			shared := &corev1.Secret{ObjectMeta: named(name + secret)}
			c.Change(shared, func() { shared.StringData = map[string]string{key: value} })
		}

		add("cell2", "cell10")
		first, second := "cell2", "cell10"
		enginetest.Eventually(GinkgoTB(), "one of both cells is refused", func() error {
			if c.cellCondition(cr, first, condition).Status != metav1.ConditionTrue {
				first, second = second, first
			}
			ofFirst, ofSecond := c.cellCondition(cr, first, condition), c.cellCondition(cr, second, condition)
			if ofFirst.Status != metav1.ConditionTrue || ofSecond.Reason != reason || !strings.Contains(ofSecond.Message, value+" is in use by NovaCell given-"+first) {
				return fmt.Errorf("%s: %+v, %s: %+v", first, ofFirst, second, ofSecond)
			}
			return nil
		})
		Expect(c.Read(&conductorv1.NovaConductor{ObjectMeta: named("given-" + second + "-conductor")})).To(BeFalse())

		By("coming later")
		add("cell11")
		third := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: "given-cell11", Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, third, condition, reason, value+" is in use by NovaCell given-"+first)
	},
		Entry("no database", novav1.ConditionDatabaseReady, "DatabaseInUse", "-database", "database"),
		Entry("no message bus", novav1.ConditionMessageBusReady, "MessageBusInUse", "-bus", "vhost"),
	)

	It("does not report a deleted mapping as left behind if the removal of its database is abandoned", func() {
		address := registrationtest.RefusedAddress(GinkgoTB())
		stop := registrationtest.Forward(GinkgoTB(), address, mariaDBAddress())
		c.mariaDBService(address)
		c.Create(&corev1.Secret{ObjectMeta: named("mariadb-admin"), StringData: map[string]string{"user": mariaDB.User, "password": mariaDB.Password}})
		c.cellBus()
		another := anotherCell()
		another.Database = &registrationv1.Connection{
			Server:         registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "mariadb"}},
			AdminSecretRef: &commonv1.SecretReference{Name: "mariadb-admin"},
		}
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, another) })
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}}
		enginetest.Await(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		syncCell("given_cell2")
		DeferCleanup(func() { mariaDB.Exec(GinkgoTB(), "DROP DATABASE IF EXISTS given_cell2") })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)

		c.hold("given-cell2-unmap", true)
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, engine.ReasonDeleting, "Unmapped: ")
		stop()
		c.hold("given-cell2-unmap", false)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "DatabaseUnreachable", "DatabaseRemoved: ")
		c.Change(child, func() { child.Annotations = map[string]string{commonv1.AnnotationAbandon: "true"} })
		enginetest.AwaitGone(GinkgoTB(), c.Client, child)
		Expect(c.ended("given-cell2-unmap")).To(Equal(1))
		Expect(mariaDB.Column(GinkgoTB(), "SELECT uuid FROM "+c.api+".cell_mappings")).To(Equal([]string{uuids["cell1"]}))
		events := &eventsv1.EventList{}
		Expect(c.Client.List(context.Background(), events, client.InNamespace(c.Namespace))).To(Succeed())
		for _, event := range events.Items {
			if event.Reason == "LeftBehind" {
				Expect(event.Note).NotTo(ContainSubstring("mapping"))
			}
		}
	})

	It("works until it is empty and keeps its mapping if only its NovaCell is deleted", func() {
		child := c.cell1(cr)
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".instances VALUES (NULL, 0)")
		c.Delete(child, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty",
			"Emptied: the cell has compute hosts: 1 (compute-0), servers: 1: ", "Nova given lists the cell, and creates it again")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell1")+".compute_nodes SET deleted = 1")
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty", "Emptied: the cell has servers: 1: ")
		Expect(c.Read(&conductorv1.NovaConductor{ObjectMeta: named(child.Name + "-conductor")})).To(BeTrue(), "the cell works")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell1")+".instances SET deleted = 1")
		c.awaitRecreated(child)
		Expect(c.ended("given-cell1-unmap")).To(BeZero())
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})

	It("is created again with its servers if the deletion of its NovaCell is abandoned", func() {
		child := c.cell1(cr)
		c.Delete(child, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty", "compute hosts: 1 (compute-0)")
		c.Change(child, func() { child.Annotations = map[string]string{commonv1.AnnotationAbandon: "true"} })
		c.awaitRecreated(child)
		Expect(c.ended("given-cell1-unmap")).To(BeZero())
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.cell1(cr).Status.UUID).To(Equal(uuids["cell1"]))
		Expect(c.cell1(cr).Status.Occupants()).To(Equal("compute hosts: 1 (compute-0)"))
	})

	It("leaves no mapping behind if it is removed while it is mapped", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".compute_nodes SET deleted = 1")
		c.hold("given-cell2-map", true)
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionMapped, engine.ReasonProgressing)
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.api+".cell_mappings (uuid, disabled, id, name) VALUES ('"+uuids["cell2"]+"', FALSE, 2, 'cell2')")
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitGone(GinkgoTB(), c.Client, child)
		Expect(mariaDB.Column(GinkgoTB(), "SELECT uuid FROM "+c.api+".cell_mappings")).To(Equal([]string{uuids["cell1"]}))
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})

	It("keeps its servers if it is removed while it has no mapping", func() {
		c.cellDatabase("cell2")
		c.cellBus()
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell2")+".instances VALUES ('compute-0', 0)")
		c.hold("given-cell2-map", true)
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell2", Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionMapped, engine.ReasonProgressing)
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[:1] })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "CellNotEmpty", "Emptied: the cell has servers: 1")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell2")+".instances SET deleted = 1")
		enginetest.AwaitGone(GinkgoTB(), c.Client, child)
	})

	DescribeTable("lets its computes go when its Nova is deleted", func(cellFirst bool) {
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".compute_nodes VALUES ('given-cell1-fake', 0, 0)")
		c.Change(cr, func() {
			cr.Spec.Cells[0].Computes = []novav1.Compute{{Name: "fake", ComputeSettings: sharedv1.ComputeSettings{Driver: sharedv1.ComputeFake}}}
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		compute := &computev1.NovaCompute{ObjectMeta: named("given-cell1-fake")}
		const waits = "nova.asterism.dev/needs-the-api"
		c.Change(compute, func() { compute.Finalizers = append(compute.Finalizers, waits) })
		if child := c.cell1(cr); cellFirst {
			c.Delete(child, metav1.DeletePropagationBackground)
			enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, engine.ReasonDeleting, "ComputesRemoved: NovaCompute given-cell1-fake ")
			Expect(c.Read(&corev1.Secret{ObjectMeta: named("given-cell1-compute-config")})).To(BeTrue(), "the compute asks the API")
		}
		c.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.Eventually(GinkgoTB(), "a compute that is deleted has no Secret, without which it asks no API", func() error {
			if c.Read(compute) && compute.DeletionTimestamp != nil && !c.Read(&corev1.Secret{ObjectMeta: named("given-cell1-compute-config")}) {
				return nil
			}
			return fmt.Errorf("deleted at %v", compute.DeletionTimestamp)
		})
		c.Change(compute, func() { compute.Finalizers = nil })
		enginetest.AwaitGone(GinkgoTB(), c.Client, cr)
	},
		Entry("with it", false),
		Entry("while it waits for them", true),
	)

	It("is not recreated with another database than the one in its mapping, unless this is a copy", func() {
		inAPI("UPDATE %s SET id = 1, name = 'cell1', database_connection = 'mysql+pymysql://nova:s3cret@db.example.org:3306/nova' WHERE uuid = '%s'")
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.api+".instance_mappings VALUES (1, FALSE)")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell1")+".compute_nodes SET deleted = 1")
		child := c.cell1(cr)
		c.Delete(child, metav1.DeletePropagationBackground)
		again := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: child.Name, Namespace: c.Namespace}}
		enginetest.AwaitReason(GinkgoTB(), c.Client, again, novav1.ConditionDatabaseReady, "DatabaseNotCopied",
			"the cell moves from database db.example.org:3306/nova to", "it has 0 servers, but the cell has 1")
		Expect(again.UID).NotTo(Equal(child.UID))
		Expect(again.Status.UUID).To(BeEmpty())
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.api+".instance_mappings SET queued_for_delete = TRUE")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})
})

var _ = Describe("A cell that is removed from the list", func() {
	It("is deleted once, without cell10, although its operator is killed after each write", func() {
		c := newCloud()
		cr := c.given()
		c.cellDatabase("cell10")
		c.busOf("cell10")
		cr.Spec.Cells = append(cr.Spec.Cells, givenCell("cell10"))
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		removed, other := c.cell1(cr), c.cell(cr, "cell10")
		mariaDB.Exec(GinkgoTB(), "UPDATE "+c.schema("cell1")+".compute_nodes SET deleted = 1", "INSERT INTO "+c.schema("cell10")+".instances VALUES ('compute-0', 0)")
		c.Operator.Stop()
		c.Change(cr, func() { cr.Spec.Cells = cr.Spec.Cells[1:] })
		lives := 0
		for ; c.Read(removed); lives++ {
			Expect(lives).To(BeNumerically("<", 200), enginetest.Conditions(removed))
			c.oneWrite(removed)
		}
		AddReportEntry("lives", lives)
		c.Run(Service, cell.Service)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.AwaitNothing(removed.GetUID(), cell.Service.Owns...)
		Expect(lives).To(BeNumerically(">", 5))
		Expect(c.ended("given-cell1-unmap")).To(Equal(1))
		Expect(c.ended("given-cell10-unmap")).To(BeZero())
		Expect(mariaDB.Column(GinkgoTB(), "SELECT uuid FROM "+c.api+".cell_mappings")).To(Equal([]string{uuids["cell10"]}))
		after := c.cell(cr, "cell10")
		Expect(after.UID).To(Equal(other.UID))
		Expect(after.DeletionTimestamp).To(BeNil())
		Expect(after.Status.Mapping).To(Equal(other.Status.Mapping))
		Expect(after.Status.Occupants()).To(Equal("compute hosts: 1 (compute-0), servers: 1"))
	})
})

// cellCondition returns a condition of a cell, an empty one if it has none yet.
func (c *cloud) cellCondition(cr *novav1.Nova, name, condition string) metav1.Condition {
	child := &novav1.NovaCell{ObjectMeta: named(cr.Name + "-" + name)}
	c.Read(child)
	return ptr.Deref(meta.FindStatusCondition(child.Status.Conditions, condition), metav1.Condition{})
}

func (c *cloud) awaitRecreated(child *novav1.NovaCell) {
	GinkgoHelper()
	enginetest.Eventually(GinkgoTB(), "the NovaCell is recreated", func() error {
		again := &novav1.NovaCell{ObjectMeta: named(child.Name)}
		if !c.Read(again) || again.UID == child.UID {
			return fmt.Errorf("the NovaCell is deleted at %v", again.DeletionTimestamp)
		}
		return nil
	})
}

// oneWrite runs the operator until it has written once, or until obj is gone.
func (c *cloud) oneWrite(obj client.Object) {
	GinkgoHelper()
	fence := enginetest.NewFence(1, true)
	c.Operator = enginetest.RunWith(GinkgoTB(), c.Namespace, enginetest.Scheme(GinkgoTB(), kinds...), []enginetest.Option{fence.Option}, Service, cell.Service)
	enginetest.Eventually(GinkgoTB(), "the operator writes", func() error {
		select {
		case <-fence.Reached():
			return nil
		default:
		}
		if c.Read(obj) {
			return errors.New("nothing written")
		}
		return nil
	})
	c.Operator.Stop()
}

var _ = Describe("The metadata service of a Nova", func() {
	It("moves into the cells and back, and is never without a ready service", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		global, ofCell := metadata.Named("given-metadata"), metadata.Named("given-cell1-metadata")
		Expect(c.Read(global)).To(BeTrue())
		Expect(c.Read(ofCell)).To(BeFalse())
		Expect(agentOf(c, cr.Status.MetadataAgent)).To(And(HaveKeyWithValue("host", []byte("given-metadata.example.org")), Not(HaveKey("publicHost"))))

		c.fail(ofCell.Name, metadatav1.ConditionWorkloadReady, "0 of 1 pods updated")
		c.Change(cr, func() {
			cr.Spec.Metadata.Mode, cr.Spec.Metadata.Exposure = novav1.MetadataPerCell, commonv1.Exposure{Type: commonv1.ExposureLoadBalancer}
		})
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "0 of 1 pods updated")
		Expect(c.Read(ofCell)).To(BeTrue())
		Expect(ofCell.Spec).To(And(
			HaveField("Mode", metadatav1.MetadataCell),
			HaveField("APIDatabaseSecretRef", BeNil()),
			HaveField("DatabaseSecretRef", HaveValue(HaveField("Name", "cell1-database"))),
			HaveField("MessageBusSecretRef.Name", "cell1-bus"),
			HaveField("MetadataSecretRef.Name", "given-cell1-metadata"),
		))
		Expect(c.Read(global)).To(BeTrue())
		Expect(global.DeletionTimestamp).To(BeNil())
		c.repair(ofCell.Name)
		enginetest.AwaitGone(GinkgoTB(), c.Client, global)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(cr.Status.MetadataAgent).To(BeNil())
		agent := cr.Status.Cells[0].MetadataAgent
		Expect(agentOf(c, agent)).To(And(
			HaveKeyWithValue("host", []byte("given-cell1-metadata.example.org")), HaveKeyWithValue("port", []byte("8775")),
			HaveKeyWithValue("protocol", []byte("http")), HaveKeyWithValue("sharedSecret", Not(BeEmpty())),
			HaveKeyWithValue("publicHost", []byte("given-cell1-metadata.public.example.org")), HaveKeyWithValue("publicPort", []byte("443")),
			HaveKeyWithValue("publicProtocol", []byte("https")),
		))

		c.fail(global.Name, metadatav1.ConditionWorkloadReady, "0 of 1 pods updated")
		c.Change(cr, func() { cr.Spec.Metadata.Mode = novav1.MetadataGlobal })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionMetadataReady, engine.ReasonWaiting, "0 of 1 pods updated")
		Expect(c.Read(ofCell)).To(BeTrue())
		Expect(ofCell.DeletionTimestamp).To(BeNil())
		c.repair(global.Name)
		enginetest.AwaitGone(GinkgoTB(), c.Client, ofCell)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(cr.Status.Cells[0].MetadataAgent).To(BeNil())

		c.Change(cr, func() { cr.Spec.Metadata.Mode = novav1.MetadataGlobalAndPerCell })
		enginetest.Eventually(GinkgoTB(), "both services are ready", func() error {
			c.Read(cr)
			if !c.Read(global) || !c.Read(ofCell) || !meta.IsStatusConditionTrue(cr.Status.Conditions, commonv1.ConditionReady) {
				return fmt.Errorf("%s", enginetest.Conditions(cr))
			}
			return nil
		})
	})
})

// agentOf returns the data of the Secret of an agent's configuration.
func agentOf(c *cloud, agent *novav1.MetadataAgent) map[string][]byte {
	GinkgoHelper()
	Expect(agent).NotTo(BeNil())
	secret := &corev1.Secret{ObjectMeta: named(agent.SecretRef.Name)}
	Expect(c.Read(secret)).To(BeTrue())
	key := &corev1.Secret{ObjectMeta: named(engine.HashKeySecret)}
	Expect(c.Read(key)).To(BeTrue())
	content, err := json.Marshal([]any{secret.Data})
	Expect(err).NotTo(HaveOccurred())
	mac := hmac.New(sha256.New, key.Data[engine.HashKeyField])
	mac.Write(content)
	Expect(agent.Hash).To(Equal(hex.EncodeToString(mac.Sum(nil)[:8])))
	return secret.Data
}

var _ = Describe("An upgrade of a Nova", func() {
	It("updates the superconductor, the cells, scheduler and metadata, and the API, each after the one before it", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		before := cr.Spec.ContainerImage
		images := func() map[string]string {
			all := map[string]string{}
			for name, child := range map[string]client.Object{
				"superconductor": superconductorNamed(cr), "cell": &conductorv1.NovaConductor{ObjectMeta: named("given-cell1-conductor")},
				"scheduler": schedulerNamed(cr), "metadata": metadata.Named("given-metadata"), "api": apiNamed(cr),
			} {
				Expect(c.Read(child)).To(BeTrue(), name)
				all[name] = imageOf(child)
			}
			return all
		}
		const notUpdated = "0 of 1 pods updated"
		fails := []string{"given-superconductor", "given-cell1-conductor", "given-scheduler"}
		for _, name := range fails {
			c.fail(name, conductorv1.ConditionWorkloadReady, notUpdated)
		}
		c.Change(cr, func() { cr.Spec.ContainerImage = nextImage })

		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "NovaConductor given-superconductor", notUpdated)
		enginetest.Eventually(GinkgoTB(), "the conductor of the cell is held", func() error {
			conductor := &conductorv1.NovaConductor{ObjectMeta: named("given-cell1-conductor")}
			if c.Read(conductor); conductor.Spec.Rollout != commonv1.RolloutHeld || conductor.Spec.ContainerImage != nextImage {
				return fmt.Errorf("rollout %s, image %s", conductor.Spec.Rollout, conductor.Spec.ContainerImage)
			}
			return nil
		})
		Expect(images()).To(Equal(map[string]string{"superconductor": nextImage, "cell": nextImage, "scheduler": before, "metadata": before, "api": before}))

		c.repair(fails[0])
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "NovaCell given-cell1", notUpdated)
		Expect(c.cell1(cr).Spec.Rollout).To(Equal(commonv1.RolloutAutomatic))
		Expect(images()).To(And(HaveKeyWithValue("scheduler", before), HaveKeyWithValue("api", before)))

		c.repair(fails[1])
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionAPIReady, engine.ReasonWaiting, "NovaScheduler given-scheduler", notUpdated)
		Expect(images()).To(And(HaveKeyWithValue("scheduler", nextImage), HaveKeyWithValue("metadata", nextImage), HaveKeyWithValue("api", before)))

		c.repair(fails[2])
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(images()).To(HaveEach(nextImage))
	})

	It("does not delay another change of a service while a cell is broken", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.fail("given-cell1-conductor", conductorv1.ConditionWorkloadReady, "0 of 1 pods ready")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "0 of 1 pods ready")
		c.Change(cr, func() { cr.Spec.Scheduler.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		enginetest.Eventually(GinkgoTB(), "the scheduler is updated", func() error {
			child := schedulerNamed(cr)
			if c.Read(child); child.Spec.CustomServiceConfig == "" {
				return fmt.Errorf("%s", enginetest.Conditions(cr))
			}
			return nil
		})
	})
})

var _ = Describe("The table of services", func() {
	It("loses the rows of pods that a scale-down has deleted, and no others", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		scheduler := schedulerNamed(cr)
		Expect(c.Read(scheduler)).To(BeTrue())
		c.Scale(scheduler, 2)
		paused := cellConductorNamed(cr, cr.Spec.Cells[0])
		Expect(c.Read(paused)).To(BeTrue())
		c.Change(paused, func() { paused.Spec.Paused = true })
		kept := map[string]string{
			"first":       "nova-scheduler given-scheduler-0 down",
			"scaled":      "nova-scheduler given-scheduler-1 down",
			"still up":    "nova-conductor given-superconductor-3 up",
			"other kind":  "nova-compute given-scheduler-7 down",
			"other Nova":  "nova-conductor another-superconductor-5 down",
			"no number":   "nova-conductor given-superconductor-x down",
			"other cell":  "nova-conductor given-cell10-conductor-4 down",
			"the compute": "nova-compute compute-1 down",
			"paused":      "nova-conductor given-cell1-conductor-12 down",
		}
		rows := map[string]string{
			"a": "nova-scheduler given-scheduler-2 down", "b": "nova-conductor given-superconductor-1 down",
		}
		maps.Copy(rows, kept)
		c.setRows(rows)
		enginetest.Eventually(GinkgoTB(), "the rows are deleted", func() error {
			if ids := c.rowIDs(); len(ids) > len(kept) {
				return fmt.Errorf("left: %v", ids)
			}
			return nil
		})
		// The operator requests the rows again when it has deleted all that it wants to delete.
		c.Scale(scheduler, 1)
		delete(kept, "scaled")
		enginetest.Eventually(GinkgoTB(), "the row of the second pod is deleted", func() error {
			if ids := c.rowIDs(); slices.Contains(ids, "scaled") {
				return fmt.Errorf("left: %v", ids)
			}
			return nil
		})
		Expect(c.rowIDs()).To(ConsistOf(slices.Collect(maps.Keys(kept))))
	})
})
