package nova

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/metadata"
)

// TestWhyNotEmptyTellsWhatToDo: only the users of a cell with servers or hosts can remove these.
func TestWhyNotEmptyTellsWhatToDo(t *testing.T) {
	none, servers := int32(0), int32(3)
	for want, change := range map[string]func(*novav1.NovaCell){
		"": func(c *novav1.NovaCell) {
			c.Status.CountedGeneration, c.Annotations = 0, map[string]string{commonv1.AnnotationAbandon: "true"}
		},
		"has servers: 3: remove the servers, and the compute hosts outside this cluster, or add the cell to spec.cells again":                   func(c *novav1.NovaCell) { c.Status.Servers = &servers },
		"its compute hosts and servers are not counted yet: if this lasts, see the conditions of NovaCell demo-cell2":                           func(c *novav1.NovaCell) { c.Status.Servers = nil },
		"its database moves to db:3306/other: complete the copy, see DatabaseReady of NovaCell demo-cell2, or add the cell to spec.cells again": func(c *novav1.NovaCell) { c.Status.NextDatabase = "db:3306/other" },
		"its operator has not seen generation 2 of NovaCell demo-cell2 yet":                                                                     func(c *novav1.NovaCell) { c.Generation = 2 },
		"its computes leave when its servers are counted again: see the conditions of NovaCell demo-cell2": func(c *novav1.NovaCell) {
			c.Spec.Computes, c.Status.Hosts = []novav1.Compute{{Name: "fake"}}, &novav1.CellHosts{Mapped: 1, Names: []string{"demo-cell2-fake"}}
		},
		"NovaCell demo-cell2 is paused: its compute hosts and servers are not counted": func(c *novav1.NovaCell) { c.Spec.Paused = true },
	} {
		child := &novav1.NovaCell{ObjectMeta: named("demo-cell2")}
		child.Generation, child.Status.ObservedGeneration = 1, 1
		child.Status.UUID, child.Status.Servers, child.Status.CountedGeneration = uuids["cell2"], &none, 1
		change(child)
		if got := whyNotEmpty(child); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	child := &novav1.NovaCell{ObjectMeta: named("demo-cell2")}
	child.Status.UUID, child.Status.Servers = uuids["cell2"], &none
	if got := whyNotEmpty(child); got != "" {
		t.Errorf("an empty cell: got %q", got)
	}
	child.Annotations, child.Status.Servers, child.Generation, child.Status.ObservedGeneration = map[string]string{commonv1.AnnotationAbandon: "true"}, &servers, 2, 2
	if got := whyNotEmpty(child); got == "" {
		t.Error("a cell whose servers are known goes before it is counted again")
	}
}

// TestComputesLeaveWithTheirCell when its servers have been counted, and there is none.
func TestComputesLeaveWithTheirCell(t *testing.T) {
	for name, change := range map[string]func(*novav1.NovaCell){
		"leaves":         func(*novav1.NovaCell) {},
		"has a server":   func(c *novav1.NovaCell) { c.Status.Servers = new(int32(1)) },
		"is not counted": func(c *novav1.NovaCell) { c.Status.Servers = nil },
		"was counted before": func(c *novav1.NovaCell) {
			c.Generation, c.Status.ObservedGeneration = 3, 3
			c.Status.Conditions[0].Status, c.Status.Conditions[0].ObservedGeneration = metav1.ConditionFalse, 3
		},
		"cannot be counted":    func(c *novav1.NovaCell) { c.Status.Conditions[0].Status = metav1.ConditionUnknown },
		"is paused":            func(c *novav1.NovaCell) { c.Spec.Paused = true },
		"moves":                func(c *novav1.NovaCell) { c.Status.NextDatabase = "db:3306/other" },
		"has left":             func(c *novav1.NovaCell) { c.Spec.Computes = nil },
		"is empty":             func(c *novav1.NovaCell) { c.Status.Hosts = &novav1.CellHosts{} },
		"is deleted meanwhile": func(c *novav1.NovaCell) { c.DeletionTimestamp = new(metav1.Now()) },
	} {
		child := &novav1.NovaCell{ObjectMeta: named("demo-cell2")}
		child.Generation, child.Status.ObservedGeneration, child.Status.CountedGeneration = 2, 2, 2
		child.Spec.DeletionPolicy = novav1.DeletionRetain
		child.Spec.Computes = []novav1.Compute{{Name: "fake"}}
		child.Status.UUID, child.Status.Servers = uuids["cell2"], new(int32(0))
		child.Status.Hosts = &novav1.CellHosts{Mapped: 1, Names: []string{"demo-cell2-fake"}}
		child.Status.Conditions = []metav1.Condition{{Type: novav1.ConditionHostsMapped, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
		change(child)
		sent, applied := leaving(child).(*novav1.NovaCell)
		if applied != (name == "leaves") {
			t.Errorf("a cell that %s: applied is %t", name, applied)
		}
		if applied && (len(sent.Spec.Computes) > 0 || sent.Spec.DeletionPolicy != novav1.DeletionRetain || len(child.Spec.Computes) == 0) {
			t.Errorf("a cell that %s gets %+v", name, sent.Spec)
		}
	}
}

// TestNewComputesWaitForTheirPhase of an upgrade, as those do that the cell has already.
func TestNewComputesWaitForTheirPhase(t *testing.T) {
	cr := givenNova()
	cr.Spec.ContainerImage = "new"
	cr.Status.Upgrade = &novav1.UpgradeStatus{Phase: novav1.UpgradeServices, FromImage: "old"}
	listed := []novav1.Compute{{Name: "known", ContainerImage: "known"}}
	for image, compute := range map[string]novav1.Compute{
		"known": {Name: "known", ContainerImage: "new"},
		"old":   {Name: "joins", ContainerImage: "new"},
		"own":   {Name: "joins", ContainerImage: "own"},
	} {
		for _, superconductor := range []string{"", "new-super"} {
			cr.Spec.Superconductor.ContainerImage = superconductor
			if got := runningImage(cr, listed, compute); got != image {
				t.Errorf("%+v has image %q, not %q, beside superconductor %q", compute, got, image, superconductor)
			}
		}
	}
	joins := novav1.Cell{Name: "joins", Computes: []novav1.Compute{{Name: "fake"}}}
	if got := computes(cr, joins, nil)[0].ContainerImage; got != "old" {
		t.Errorf("a compute of a cell that joins has image %q", got)
	}
}

var _ = Describe("Nova with connection Secrets", func() {
	It("starts its services once, after the cells are mapped", func() {
		c := newCloud()
		c.hold("given-cell1-map", true)
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "NovaCell given-cell1", "SchemaReady for 2m0s")
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutHeld))
		for _, resource := range []string{"novaschedulers", "novaapis", "novametadata"} {
			Expect(c.Operator.Requests.Of("apply", resource)).To(BeEmpty(), resource)
		}
		Expect(cr.Status).To(And(HaveField("ReadyCells", BeEquivalentTo(0)), HaveField("DesiredCells", BeEquivalentTo(1))))
		Expect(meta.IsStatusConditionTrue(cr.Status.Conditions, commonv1.ConditionAvailable)).To(BeFalse())

		c.hold("given-cell1-map", false)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutAutomatic))
		child := c.cell1(cr)
		Expect(c.triggers(cr)).To(Equal(map[string]string{"cell1": child.Status.Mapping.Revision}))
		Expect(child.Status.UUID).To(Equal(uuids["cell1"]))
		enginetest.Eventually(GinkgoTB(), "the table of cells is complete", func() error {
			c.Read(cr)
			row := cr.Status.Cells[0]
			if row.Hosts == nil || row.UUID != uuids["cell1"] || row.Ready != metav1.ConditionTrue || cr.Status.ReadyCells != 1 {
				return fmt.Errorf("%d: %+v", cr.Status.ReadyCells, row)
			}
			return nil
		})
		Expect(cr.Status.Cells[0]).To(And(
			HaveField("Hosts", HaveValue(Equal(novav1.CellHosts{Mapped: 1, Names: []string{"compute-0"}}))),
			HaveField("Servers", HaveValue(BeEquivalentTo(0))),
			HaveField("Mapped", metav1.ConditionTrue),
			HaveField("Scheduling", novav1.SchedulingEnabled),
			HaveField("ComputeConfigHash", Not(BeEmpty())),
			HaveField("ComputeConfigSecretRef", HaveValue(HaveField("Name", cr.Name+"-cell1-compute-config"))),
		))
		Expect(cr.Status.Endpoints).To(ContainElement(commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: "https://given-api.example.org/v2.1"}))
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		Expect(c.runs).To(Equal(map[string]int{"given-cell0-release": 1, "given-cell0-map": 1, "given-cell1-map": 1}), "each Job ran once")

		for _, resource := range []string{"novaschedulers", "novaapis", "novametadata", "novacells"} {
			Expect(c.Operator.Requests.Of("apply", resource)).To(HaveLen(1), resource)
		}

		compute := &corev1.Secret{ObjectMeta: named("given-cell1-compute-config")}
		Expect(c.Read(compute)).To(BeTrue())
		Expect(string(compute.Data["50-connections.conf"])).To(And(ContainSubstring("transport_url = rabbit://nova_cell1:"), Not(ContainSubstring("mysql"))))
	})

	It("names the page of the consoles in the configuration of the computes, while there is one", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		options := func() string {
			compute := &corev1.Secret{ObjectMeta: named("given-cell1-compute-config")}
			Expect(c.Read(compute)).To(BeTrue())
			return string(compute.Data["50-connections.conf"])
		}
		Expect(options()).To(ContainSubstring("enabled = false"))
		before := c.cell1(cr).Status.ComputeConfigHash

		c.Change(cr, func() { cr.Spec.Cells[0].NoVNCProxy = &novav1.CellNoVNCProxy{} })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(options()).To(And(ContainSubstring("enabled = true"), ContainSubstring("novncproxy_base_url = https://given-cell1-novncproxy.example.org/vnc_lite.html")))
		Expect(c.cell1(cr).Status.ComputeConfigHash).NotTo(Equal(before))

		c.fail("given-cell1-novncproxy", novncproxyv1.ConditionWorkloadReady, "no pod is ready")
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionConsoleReady, engine.ReasonWaiting, "no pod is ready")
		Expect(options()).To(ContainSubstring("enabled = true"), "a proxy that is not ready keeps its address")

		c.Change(cr, func() { cr.Spec.Cells[0].NoVNCProxy = nil })
		enginetest.AwaitGone(GinkgoTB(), c.Client, &novncproxyv1.NovaNoVNCProxy{ObjectMeta: metav1.ObjectMeta{Name: "given-cell1-novncproxy", Namespace: c.Namespace}})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(options()).To(ContainSubstring("enabled = false"))
	})

	It("deletes a retired compute before its dependents, and waits for it, also if it leaves the list or comes back", func() {
		c := newCloud()
		cr := c.givenCompute()
		compute := &computev1.NovaCompute{ObjectMeta: named("given-cell1-fake")}
		const hold = "nova.asterism.dev/held-by-the-test"
		c.Change(compute, func() { compute.Finalizers = append(compute.Finalizers, hold) })
		retired, listed := slices.Clone(cr.Spec.Cells[0].Computes), cr.Spec.Cells[0].Computes
		retired[0].State = novav1.ComputeRetired
		for _, computes := range [][]novav1.Compute{retired, nil, listed} {
			c.Change(cr, func() { cr.Spec.Cells[0].Computes = computes })
			enginetest.Eventually(GinkgoTB(), "the cell has the list", func() error {
				if cell := c.cell1(cr); !equality.Semantic.DeepEqual(states(cell.Spec.Computes), states(computes)) {
					return fmt.Errorf("%+v", cell.Spec.Computes)
				}
				return nil
			})
			enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionComputesReady, engine.ReasonProgressing, "NovaCompute given-cell1-fake is being deleted", hold)
		}
		Expect(c.Read(compute)).To(BeTrue())
		Expect(compute.Finalizers).To(Equal([]string{hold}), "a deletion in the foreground would delete the pod first")
		deleted := compute.UID
		c.Change(compute, func() { compute.Finalizers = nil })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.Read(compute)).To(BeTrue())
		Expect(compute.UID).NotTo(Equal(deleted))
	})

	It("keeps a compute that leaves the list until it has had no server for a minute", func() {
		c := newCloud()
		cr := c.givenCompute()
		compute := &computev1.NovaCompute{ObjectMeta: named("given-cell1-fake")}
		Expect(c.Read(compute)).To(BeTrue())
		before, listed := compute.DeepCopy(), cr.Spec.Cells[0].Computes
		inCell := func(statement string) {
			mariaDB.Exec(GinkgoTB(), fmt.Sprintf(statement, c.schema("cell1")+".instances"))
		}
		leave := func(message string) {
			GinkgoHelper()
			c.Change(cr, func() { cr.Spec.Cells[0].Computes = nil })
			enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "NovaCompute given-cell1-fake is not in computes of the cell, and "+message)
		}
		comeBack := func() {
			GinkgoHelper()
			c.Change(cr, func() { cr.Spec.Cells[0].Computes = listed })
			enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
			Expect(c.Read(compute)).To(BeTrue())
			Expect(compute).To(And(HaveField("UID", before.UID), HaveField("Generation", before.Generation), HaveField("DeletionTimestamp", BeNil())))
		}

		leave("is removed after a minute without a server")
		comeBack()
		c.ChangeStatus(compute, func() { compute.Status.Hosts = []string{"node-1"} })
		inCell("INSERT INTO %s VALUES ('given-cell1-fake', 0), ('node-1', 0), ('compute-0', 0)")
		leave("has servers: 2")
		inCell("UPDATE %s SET deleted = 1 WHERE host = 'given-cell1-fake'")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "has servers: 1")
		comeBack()

		leave("has servers: 1")
		inCell("UPDATE %s SET deleted = 1 WHERE host = 'node-1'")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, "is removed after a minute without a server")
		enginetest.AwaitGone(GinkgoTB(), c.Client, compute)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	})

	It("keeps a compute while somebody else has changed the list, also without the operator of the Nova", func() {
		c := newCloud()
		cr := c.givenCompute()
		compute := &computev1.NovaCompute{ObjectMeta: named("given-cell1-fake")}
		Expect(c.Read(compute)).To(BeTrue())
		before := compute.UID
		c.Run(cell.Service)
		child := c.cell1(cr)
		c.Change(child, func() { child.Spec.Computes = nil })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionComputesReady, engine.ReasonWaiting, "NovaCompute given-cell1-fake is not in computes of the cell, and is removed after a minute")
		c.Run(Service, cell.Service)
		enginetest.Eventually(GinkgoTB(), "the Nova restores the list", func() error {
			if child = c.cell1(cr); len(child.Spec.Computes) == 0 {
				return errors.New("no compute")
			}
			return nil
		})
		enginetest.AwaitReady(GinkgoTB(), c.Client, child)
		Expect(c.Read(compute)).To(BeTrue())
		Expect(compute).To(And(HaveField("UID", before), HaveField("DeletionTimestamp", BeNil())))
	})

	It("restarts the services when a cell is added or its mapping changes, and does not change the other cells", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		first := c.triggers(cr)["cell1"]
		mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".compute_nodes VALUES ('compute-1', 0, 0), ('compute-0', 0, 0)") // compute-0 has two nodes of Ironic

		c.cellDatabase("cell2")
		c.cellBus()
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return len(triggers) == 2 })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.triggers(cr)["cell1"]).To(Equal(first))
		second := c.triggers(cr)["cell2"]

		bus := &corev1.Secret{ObjectMeta: named("cell1-bus")}
		c.Change(bus, func() { bus.StringData = map[string]string{"password": "another"} })
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return triggers["cell1"] != first })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.triggers(cr)["cell2"]).To(Equal(second))
		Expect(c.ended("given-cell1-map")).To(Equal(2))
		Expect(c.ended("given-cell2-map")).To(Equal(1))
		Expect(c.ended("given-cell0-map")).To(Equal(1))
		Expect(c.cell1(cr).Status.UUID).To(Equal(uuids["cell1"]))

		enginetest.Eventually(GinkgoTB(), "the new host is discovered", func() error {
			if c.ended("given-cell1-discover") == 0 {
				return fmt.Errorf("hosts: %+v", c.cell1(cr).Status.Hosts)
			}
			return nil
		})
		enginetest.Eventually(GinkgoTB(), "a host counts as mapped, although nova-manage does not mark its second node", func() error {
			child := c.cell1(cr)
			if child.Status.Hosts.Mapped != 2 || child.Status.Hosts.Unmapped != 0 || !meta.IsStatusConditionTrue(child.Status.Conditions, novav1.ConditionHostsMapped) {
				return fmt.Errorf("hosts: %+v; %s", child.Status.Hosts, enginetest.Conditions(child))
			}
			return nil
		})
		Expect(c.ended("given-cell1-discover")).To(Equal(1))
	})

	It("maps a host that comes back marked as mapped, and ends a discovery before that of another host", func() {
		const discover = "given-cell1-discover"
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		arrives := func(host string) {
			mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".compute_nodes VALUES ('"+host+"', 1, 0)")
		}
		c.hold(discover, true)
		arrives("compute-1")
		c.setPhase(discover, corev1.PodRunning)
		arrives("compute-2")
		enginetest.AwaitReason(GinkgoTB(), c.Client, c.cell1(cr), novav1.ConditionHostsMapped, engine.ReasonProgressing, "is superseded, and is replaced when it ends")
		c.hold(discover, false)
		c.setPhase(discover, corev1.PodSucceeded)
		enginetest.Eventually(GinkgoTB(), "the hosts are mapped", func() error {
			if hosts := c.cell1(cr).Status.Hosts; hosts.Mapped != 3 || hosts.Unmapped != 0 {
				return fmt.Errorf("hosts: %+v", hosts)
			}
			return nil
		})
		Expect(c.ended(discover)).To(Equal(1), "the second Job")
	})

	It("gives the services the authorities of each cell before a mapping names them", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		first, second := string(certificatetest.NewAuthority(GinkgoTB()).PEM), string(certificatetest.NewAuthority(GinkgoTB()).PEM)
		bus, child := &corev1.Secret{ObjectMeta: named("cell1-bus")}, c.cell1(cr)
		trust := func(authorities string) {
			c.Change(bus, func() { bus.StringData = map[string]string{"ca.crt": authorities} })
		}
		c.fail(apiName(cr), apiv1.ConditionWorkloadReady, "a pod of the former revision runs")
		trust(first)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionMapped, novav1.ReasonAuthorityNotRead, "given-api does not have the certificate authorities of the cell")
		c.awaitCAFiles(cr, map[string]string{"cell1-messagebus-ca.crt": first})
		Expect(c.ended("given-cell1-map")).To(Equal(1), "the mapping has no CA file that the API lacks")

		c.repair(apiName(cr))
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.ended("given-cell1-map")).To(Equal(2))
		var stored []string
		secrets := &corev1.SecretList{}
		Expect(c.Client.List(context.Background(), secrets, client.InNamespace(c.Namespace))).To(Succeed())
		for _, secret := range secrets.Items {
			if strings.HasPrefix(secret.Name, "given-cell1-connections-") {
				stored = append(stored, string(secret.Data["50-connections.conf"]))
			}
		}
		Expect(stored).To(ContainElement(ContainSubstring("&ssl=1&ssl_ca_file=%2Fetc%2Fnova%2Fcell1-messagebus-ca.crt")))

		By("adding a cell with another authority")
		c.cellDatabase("cell2")
		c.cellBus()
		other := &corev1.Secret{ObjectMeta: named("cell2-bus")}
		c.Change(other, func() { other.StringData = map[string]string{"ca.crt": second} })
		c.Change(cr, func() { cr.Spec.Cells = append(cr.Spec.Cells, anotherCell()) })
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return len(triggers) == 2 })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.awaitCAFiles(cr, map[string]string{"cell1-messagebus-ca.crt": first, "cell2-messagebus-ca.crt": second})

		By("renewing an authority, which changes no mapping")
		triggers := c.triggers(cr)
		trust(first + second)
		c.awaitCAFiles(cr, map[string]string{"cell1-messagebus-ca.crt": first + second, "cell2-messagebus-ca.crt": second})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.triggers(cr)).To(Equal(triggers))
		Expect(c.ended("given-cell1-map")).To(Equal(2))

		By("connecting without TLS again")
		c.Change(bus, func() { delete(bus.Data, "ca.crt") })
		c.awaitCAFiles(cr, map[string]string{"cell2-messagebus-ca.crt": second})
		enginetest.AwaitGone(GinkgoTB(), c.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "given-cell1-messagebus-ca", Namespace: c.Namespace}})
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.ended("given-cell1-map")).To(Equal(3))
	})

	It("starts without a broken cell after a timeout, and adds the repaired cell", func() {
		c := newCloud()
		cr := c.given()
		cr.Spec.Cells = append(cr.Spec.Cells, anotherCell())
		c.Create(cr)
		missing := []string{"Secret cell2-database does not exist"}
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionCellsReady, engine.ReasonWaiting, missing...)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting)
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutHeld))

		conductor := c.superconductor(cr)
		c.ChangeStatus(conductor, func() {
			meta.FindStatusCondition(conductor.Status.Conditions, conductorv1.ConditionSchemaReady).LastTransitionTime = metav1.NewTime(time.Now().Add(-mappingTimeout))
		})
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionEndpointsReady, metav1.ConditionTrue)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, engine.ReasonWaiting, missing...)
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutAutomatic))
		Expect(slices.Collect(maps.Keys(c.triggers(cr)))).To(ConsistOf("cell1"))
		Expect(cr.Status).To(And(HaveField("ReadyCells", BeEquivalentTo(1)), HaveField("DesiredCells", BeEquivalentTo(2))))
		Expect(cr.Status.Cells[1]).To(And(HaveField("Ready", metav1.ConditionFalse), HaveField("Reason", engine.ReasonWaiting), HaveField("Message", missing[0])))

		c.cellDatabase("cell2")
		c.cellBus()
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		c.awaitTriggers(cr, func(triggers map[string]string) bool { return len(triggers) == 2 })
		Expect(c.superconductor(cr).Spec.Rollout).To(Equal(commonv1.RolloutAutomatic))
	})

	It("does not change the replicas of a scaled service", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		scheduler := &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}
		Expect(c.Read(scheduler)).To(BeTrue())
		c.Scale(scheduler, 3)
		c.Operator.Requests.Reset()
		c.Change(cr, func() { cr.Spec.Scheduler.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.Read(scheduler)).To(BeTrue())
		Expect(scheduler.Spec.CustomServiceConfig).To(Equal("[DEFAULT]\ndebug = true"))
		Expect(scheduler.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(c.Written()).To(HaveEach(Or(Equal("apply novaschedulers "+scheduler.Name), HaveSuffix("/status "+cr.Name))), "no other object is changed")
	})

	It("changes nothing while it is paused, nor does its cell, and continues afterwards", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		child, scheduler := c.cell1(cr), schedulerNamed(cr)
		c.Operator.Requests.Reset()
		c.Change(cr, func() { cr.Spec.Paused = true })
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, metav1.ConditionUnknown)
		enginetest.Await(GinkgoTB(), c.Client, child, commonv1.ConditionReady, metav1.ConditionUnknown)
		Expect(meta.FindStatusCondition(child.Status.Conditions, commonv1.ConditionReady).Message).To(HaveSuffix("until spec.paused is removed from Nova given"))
		conductor := cellConductorNamed(cr, cr.Spec.Cells[0])
		Expect(c.Read(conductor) && conductor.IsPaused()).To(BeTrue(), "the conductor of the cell is paused")
		Expect(c.Written()).To(HaveEach(Or(HavePrefix("apply nova"), MatchRegexp("^patch nova(cell)?s/status "))), "paused of the children, and the status")

		c.Operator.Requests.Reset()
		c.setRows(map[string]string{"scaled": "nova-scheduler given-scheduler-2 down"})
		requests := c.requests()
		c.Change(cr, func() { cr.Spec.Scheduler.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, metav1.ConditionUnknown)
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		Expect(c.requests()).To(BeNumerically(">", requests), "the condition Available is measured")
		Expect(c.rowIDs()).To(ConsistOf("scaled"))
		Expect(c.Written()).To(HaveEach(MatchRegexp("^patch nova(cell)?s/status ")))

		c.Change(cr, func() { cr.Spec.Paused = false })
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr, child)
		Expect(c.Read(scheduler) && !scheduler.IsPaused()).To(BeTrue())
		Expect(scheduler.Spec.CustomServiceConfig).To(Equal("[DEFAULT]\ndebug = true"))
		enginetest.Eventually(GinkgoTB(), "the row of the pod is deleted", func() error {
			if ids := c.rowIDs(); len(ids) > 0 {
				return fmt.Errorf("left: %v", ids)
			}
			return nil
		})
	})

	DescribeTable("is deleted in order, without the user's Secrets", func(policy metav1.DeletionPropagation) {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		child := c.cell1(cr)
		c.Operator.Requests.Reset()
		c.Delete(cr, policy)
		enginetest.AwaitGone(GinkgoTB(), c.Client, cr)
		c.nothingLeft(cr, child)
		var deleted []string
		for _, request := range c.Operator.Requests.Writes() {
			if request.Verb == "delete" && request.Resource != "secrets" {
				deleted = append(deleted, request.Name)
			}
		}
		deleted = slices.Compact(deleted)
		if policy == metav1.DeletePropagationBackground { // in the foreground the garbage collector may delete the cell's conductor first; a Job may map the cell again
			Expect(strings.Join(deleted, " ")).To(MatchRegexp(
				`^(given-api given-metadata|given-metadata given-api) given-scheduler given-cell1( given-cell1-map-[0-9a-f]+)?( given-cell1-conductor)? given-superconductor$`))
		}
		for _, secret := range []string{"api-database", "cell0-database", "bus", "nova-identity", "cell1-database", "cell1-bus"} {
			Expect(c.Read(&corev1.Secret{ObjectMeta: named(secret)})).To(BeTrue(), secret)
		}
	},
		Entry("in the background", metav1.DeletePropagationBackground),
		Entry("in the foreground", metav1.DeletePropagationForeground),
	)
})

// awaitTriggers waits until the restart triggers of all services satisfy reached.
func (c *cloud) awaitTriggers(cr *novav1.Nova, reached func(map[string]string) bool) {
	enginetest.Eventually(GinkgoTB(), "the services are restarted", func() error {
		all := c.allTriggers(cr)
		if slices.ContainsFunc(all, func(triggers map[string]string) bool { return !reached(triggers) }) {
			return fmt.Errorf("the triggers are %v", all)
		}
		return nil
	})
}

// awaitCAFiles waits until every service that reads the mappings has exactly these CA files.
func (c *cloud) awaitCAFiles(cr *novav1.Nova, want map[string]string) {
	GinkgoHelper()
	enginetest.Eventually(GinkgoTB(), "the services have the CA files", func() error {
		scheduler, api, global := schedulerNamed(cr), apiNamed(cr), metadata.Named(metadataName(cr))
		conductor := &conductorv1.NovaConductor{ObjectMeta: named(c.cell1(cr).Name + "-conductor")}
		for _, service := range []client.Object{scheduler, api, global, conductor} {
			Expect(c.Read(service)).To(BeTrue())
		}
		for _, refs := range [][]commonv1.KeyReference{c.superconductor(cr).Spec.CAFileRefs, scheduler.Spec.CAFileRefs, api.Spec.CAFileRefs, global.Spec.CAFileRefs, conductor.Spec.CAFileRefs} {
			files := map[string]string{}
			for _, ref := range refs {
				authority := &corev1.ConfigMap{ObjectMeta: named(ref.Name)}
				c.Read(authority)
				files[ref.Key] = authority.Data[ref.Key]
			}
			if !maps.Equal(files, want) {
				return fmt.Errorf("%d of %d files: %v", len(files), len(want), slices.Sorted(maps.Keys(files)))
			}
		}
		return nil
	})
}

var _ = DescribeTable("The exposure of the metadata service of a cell", func(ofNova commonv1.Exposure, ofCell *commonv1.Exposure, want commonv1.Exposure) {
	cr := &novav1.Nova{}
	cr.Spec.Metadata.Exposure = ofNova
	Expect(metadataExposure(cr, novav1.Cell{MetadataExposure: ofCell})).To(Equal(want))
},
	Entry("is that of the Nova", commonv1.Exposure{Type: commonv1.ExposureLoadBalancer}, nil, commonv1.Exposure{Type: commonv1.ExposureLoadBalancer}),
	Entry("is None if that of the Nova has a host name", commonv1.Exposure{Type: commonv1.ExposureRoute, Hostname: "a.example.org"}, nil, commonv1.Exposure{Type: commonv1.ExposureNone}),
	Entry("may be its own", commonv1.Exposure{Type: commonv1.ExposureRoute, Hostname: "a.example.org"},
		&commonv1.Exposure{Type: commonv1.ExposureRoute, Hostname: "b.example.org"}, commonv1.Exposure{Type: commonv1.ExposureRoute, Hostname: "b.example.org"}),
)
