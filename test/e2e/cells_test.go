package e2e

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// novaOperator is the ServiceAccount of the operator that has the cells.
const novaOperator = "asterism-nova-operator"

// cellTimeout is shorter than the minute for which Nova would wait for a dead cell.
const cellTimeout = 50 * time.Second

// cellSpecs change the cells of the ControlPlane demo in a namespace, whose operators kill can
// kill.
func cellSpecs(namespace string) {
	var nova cloud
	patch := func(ctx context.Context, operations string) {
		GinkgoHelper()
		kubectl(ctx, "patch", "controlplane/demo", "--namespace="+namespace, "--type=json", "--patch="+operations)
	}
	cellRow := func(ctx context.Context, name string) map[string]any {
		GinkgoHelper()
		rows, _, err := unstructured.NestedSlice(read(ctx, "Nova", namespace, "demo").Object, "status", "cells")
		Expect(err).NotTo(HaveOccurred())
		for _, row := range rows {
			if row, ok := row.(map[string]any); ok && row["name"] == name {
				return row
			}
		}
		return nil
	}
	// mode changes the metadata services, and kills the operator meanwhile.
	mode := func(ctx context.Context, mode string, global, perCell bool) {
		GinkgoHelper()
		By("metadata " + mode)
		patch(ctx, fmt.Sprintf(`[{"op": "add", "path": "/spec/nova/metadata/mode", "value": %q}]`, mode))
		kill(ctx, novaOperator)
		for name, wanted := range map[string]bool{"demo-metadata": global, "demo-cell1-metadata": perCell, "demo-cell2-metadata": perCell} {
			if wanted {
				awaitReady(ctx, "NovaMetadata", namespace, name)
			} else {
				awaitGone(ctx, "NovaMetadata", namespace, name)
			}
		}
		awaitReady(ctx, "ControlPlane", namespace, "demo")
	}
	metadataOf := func(name string) string { return fmt.Sprintf("http://%s.%s.svc:8775", name, namespace) }

	It("gets a cell without access to the API database, and metadata services of its cells", func(ctx SpecContext) {
		nova = signIn(ctx, namespace)
		kubectl(ctx, "scale", "novaconductor/demo-superconductor", "--replicas=2", "--namespace="+namespace)
		patch(ctx, `[{"op": "add", "path": "/spec/nova/cells/-", "value": {"name": "cell2", "apiDatabaseAccess": "Disabled", "computes": [`+fakeCompute(namespace)+`]}},`+
			withSharedConnections(ctx, namespace)+`]`)
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		Expect(secret(ctx, namespace, connectionsOf(ctx, namespace, "demo-cell1-conductor"))["50-connections.conf"]).To(ContainSubstring("[api_database]"))
		Expect(secret(ctx, namespace, connectionsOf(ctx, namespace, "demo-cell2-conductor"))["50-connections.conf"]).NotTo(ContainSubstring("[api_database]"))
		Eventually(func() []computeService { return nova.services(ctx) }).WithContext(ctx).Should(ContainElement(HaveField("Host", "demo-superconductor-1")))
		kubectl(ctx, "scale", "novaconductor/demo-superconductor", "--replicas=1", "--namespace="+namespace)
		bootServer(ctx, namespace, "first") // which also makes the flavor
		nova.bootOn(ctx, "demo-cell1-fake")
		nova.bootOn(ctx, "demo-cell2-fake")
		mode(ctx, "PerCell", false, true)
		for _, cell := range []string{"cell1", "cell2"} {
			agent := secret(ctx, namespace, "demo-"+cell+"-metadata-agent")
			Expect(statusOf(ctx, agent["protocol"]+"://"+agent["host"]+":"+agent["port"]+"/", nil)).To(Equal(200))
			Expect(agent["sharedSecret"]).To(Equal(secret(ctx, namespace, "demo-"+cell+"-metadata")["sharedSecret"]))
		}
	}, SpecTimeout(15*time.Minute))

	sharedConnectionSpecs(namespace, &nova, patch)
	endpointSpec(namespace, &nova)
	upkeepSpecs(namespace, &nova, patch)

	It("lists no pod that a scale-down has deleted", func(ctx SpecContext) {
		Eventually(func() []computeService { return nova.services(ctx) }).WithContext(ctx).ShouldNot(ContainElement(HaveField("Host", "demo-superconductor-1")))
		Expect(nova.services(ctx)).To(ContainElement(HaveField("Host", "demo-superconductor-0")))
	}, SpecTimeout(15*time.Minute))

	It("loses no request while a cell is added, emptied and removed, and its operator is killed", func(ctx SpecContext) {
		serve(ctx, namespace, "neutron", neutron)
		api := startLoad(ctx, fmt.Sprintf("http://demo-api.%s.svc:8774", namespace), nova.provider.Token(), 5)
		metadata := startLoad(ctx, metadataOf("demo-cell1-metadata"), "", 5)

		By("adding a cell")
		cell3 := `{"name": "cell3", ` + givenBus(ctx, namespace) + `, "computes": [` + fakeCompute(namespace) + `]}`
		patch(ctx, `[{"op": "add", "path": "/spec/nova/cells/-", "value": `+cell3+`}]`)
		awaitWithin(ctx, patience, "NovaConductor", namespace, "demo-cell3-conductor", func(Gomega, *unstructured.Unstructured) {})
		kill(ctx, novaOperator)
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		nova.bootOn(ctx, "demo-cell3-fake")
		Expect(typeOf(ctx, namespace, "queues/"+classicBus+"/conductor")).To(Equal("classic"))
		Expect(typeOf(ctx, namespace, "queues/demo_cell1/conductor")).To(Equal("quorum"))

		By("disabling its scheduling")
		patch(ctx, `[{"op": "add", "path": "/spec/nova/cells/2/scheduling", "value": "Disabled"}]`)
		disabled := func() []string {
			return query(ctx, namespace, "SELECT name FROM demo_api.cell_mappings WHERE disabled = 1")
		}
		Eventually(disabled).WithContext(ctx).Should(Equal([]string{"cell3"}))
		Eventually(func() any { return cellRow(ctx, "cell3")["scheduling"] }).WithContext(ctx).Should(Equal("Disabled"))
		Expect(cellRow(ctx, "cell3")).To(And(HaveKeyWithValue("servers", int64(1)), HaveKeyWithValue("mapped", "True")))
		Expect(cellRow(ctx, "cell3")["oldestServiceVersion"]).To(BeNumerically(">", 60))

		By("removing it from the list")
		patch(ctx, `[{"op": "remove", "path": "/spec/nova/cells/2"}]`)
		awaitFalse(ctx, object("Nova", namespace, "demo"), "CellsReady", "Waiting",
			"cell cell3 is not in spec.cells, but has compute hosts: 1 (demo-cell3-fake), servers: 1")
		nova.deleteServersOn(ctx, "demo-cell3-fake")
		awaitGone(ctx, "NovaCompute", namespace, "demo-cell3-fake")
		kill(ctx, novaOperator)
		awaitGone(ctx, "NovaCell", namespace, "demo-cell3")
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		Expect(query(ctx, namespace, "SELECT name FROM demo_api.cell_mappings ORDER BY name")).To(Equal([]string{"cell0", "cell1", "cell2"}))
		Expect(query(ctx, namespace, "SELECT host FROM demo_api.host_mappings WHERE host = 'demo-cell3-fake'")).To(BeEmpty())
		Expect(query(ctx, namespace, `SELECT User FROM mysql.user WHERE User LIKE 'demo\_cell3%'`)).To(BeEmpty())
		Expect(rabbitNames(ctx, namespace, "vhosts")).To(And(Not(ContainElement("demo_cell3")), ContainElement(classicBus)))
		Expect(nova.serversOn(ctx, "demo-cell1-fake")).NotTo(BeEmpty())

		before := nova.serversOn(ctx, "demo-cell2-fake")
		Expect(before).NotTo(BeEmpty())
		moveDatabase(ctx, namespace, patch)
		Expect(nova.serversOn(ctx, "demo-cell2-fake")).To(ConsistOf(before))
		nova.bootOn(ctx, "demo-cell2-fake")

		_, failures := metadata.Stop()
		Expect(failures).To(BeEmpty())
		mode(ctx, "GlobalAndPerCell", true, true)
		awaitAnswer(ctx, metadataOf("demo-metadata"))
		metadata = startLoad(ctx, metadataOf("demo-metadata"), "", 5)
		mode(ctx, "Global", true, false)
		for _, load := range []*steadyLoad{api, metadata} {
			answered, failures := load.Stop()
			AddReportEntry("requests", answered)
			Expect(failures).To(BeEmpty())
			Expect(answered).To(BeNumerically(">", 20), "a fast machine changes the mode twice in as many seconds")
		}
	}, SpecTimeout(25*time.Minute))

	It("restarts its services, which work for the other cells, while the database of a mapped cell is down", func(ctx SpecContext) {
		const dead = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
		execute(ctx, namespace, "INSERT INTO demo_api.cell_mappings (uuid, name, transport_url, database_connection, disabled, created_at) "+
			"VALUES ('"+dead+"', 'dead', 'rabbit://nobody:nothing@127.0.0.1:1/', 'mysql+pymysql://nobody:nothing@127.0.0.1:1/dead', 0, NOW())")
		DeferCleanup(func(ctx SpecContext) {
			execute(ctx, namespace, "DELETE FROM demo_api.cell_mappings WHERE uuid = '"+dead+"'")
		})
		serve(ctx, namespace, "neutron", neutron) // the metadata service asks it for security groups
		began := time.Now()
		snippet := `{"customServiceConfig": "[DEFAULT]\nuse_stderr = true\n"}`
		toNeutron := `{"customServiceConfig": "[neutron]\nendpoint_override = http://neutron.` + namespace + `.svc.cluster.local:8080\n"}`
		restarted := map[string]string{"demo-api": "NovaAPI", "demo-scheduler": "NovaScheduler", "demo-metadata": "NovaMetadata"}
		generations := map[string]int64{}
		for name, kind := range restarted {
			generations[name] = read(ctx, kind, namespace, name).GetGeneration()
		}
		kubectl(ctx, "patch", "controlplane/demo", "--namespace="+namespace, "--type=merge",
			`--patch={"spec": {"nova": {"api": `+snippet+`, "scheduler": `+snippet+`, "metadata": `+toNeutron+`}}}`)
		for name, kind := range restarted {
			awaitWithin(ctx, patience, kind, namespace, name, func(g Gomega, o *unstructured.Unstructured) {
				g.Expect(o.GetGeneration()).To(BeNumerically(">", generations[name]))
			})
			awaitReady(ctx, kind, namespace, name)
		}
		AddReportEntry("started", time.Since(began).Round(time.Second))
		began = time.Now()
		Expect(nova.activeServers(ctx)).NotTo(BeEmpty())
		AddReportEntry("answered", time.Since(began).Round(time.Millisecond))
		Expect(time.Since(began)).To(BeNumerically("<", cellTimeout))
		began = time.Now()
		Expect(nova.services(ctx)).To(ContainElement(HaveField("Host", "demo-cell1-conductor-0")), "a list of all cells")
		AddReportEntry("listed", time.Since(began).Round(time.Millisecond))
		Expect(time.Since(began)).To(BeNumerically("<", cellTimeout))
		began = time.Now()
		key := secret(ctx, namespace, "demo-metadata")["sharedSecret"]
		status, found := nova.instanceOf(ctx, metadataOf("demo-metadata"), nova.serversOn(ctx, "demo-cell1-fake")[0].ID, key)
		Expect(status).To(Equal(http.StatusOK))
		Expect(found).NotTo(BeEmpty())
		AddReportEntry("metadata", time.Since(began).Round(time.Millisecond))
		Expect(time.Since(began)).To(BeNumerically("<", cellTimeout))
		nova.bootOn(ctx, "demo-cell1-fake")
		awaitWithin(ctx, patience, "Nova", namespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Available").status).To(Equal("True"))
			g.Expect(conditionOf(o, "CellsReady").status).To(Equal("True"))
		})
	}, SpecTimeout(15*time.Minute))

	It("is deleted with all of its cells but their databases, and recreated with its servers", func(ctx SpecContext) {
		servers := nova.activeServers(ctx)
		recreated := object("ControlPlane", namespace, "demo")
		recreated.Object["spec"] = read(ctx, "ControlPlane", namespace, "demo").Object["spec"]
		remove(ctx, namespace, "demo", metav1.DeletePropagationBackground)
		expectRemoved(ctx, namespace, "demo")
		Expect(queryServer(ctx, namespace, secondMariaDB, `SELECT User FROM mysql.user WHERE User LIKE 'demo\_%'`)).To(BeEmpty())
		Expect(nova.computeEndpoints(ctx)).To(BeEmpty())
		Expect(databasesOf(ctx, namespace, "demo")).To(ConsistOf("demo_api", "demo_cell0", "demo_cell1", "demo_cell3"))
		Expect(queryServer(ctx, namespace, secondMariaDB, "SHOW DATABASES LIKE 'demo%'")).To(ConsistOf("demo_cell2"))

		Expect(k8s.Create(ctx, recreated)).To(Succeed())
		awaitReady(ctx, "ControlPlane", namespace, "demo")
		Expect(cellsOf(ctx, namespace, "demo")).To(ConsistOf("cell0", "cell1", "cell2"))
		Expect(nova.activeServers(ctx)).To(ConsistOf(servers))
		nova.bootOn(ctx, "demo-cell2-fake")
	}, SpecTimeout(15*time.Minute))
}

// classicBus is a vhost, and its user, of a cell with classic queues beside cells with quorum queues.
const classicBus = "classic"

// givenBus makes a message bus with classic queues, and returns the field of a cell that uses it.
func givenBus(ctx context.Context, namespace string) string {
	GinkgoHelper()
	makeBusUser(ctx, namespace, classicBus, classicBus, canaryBus)
	setSecret(ctx, namespace, classicBus, map[string]string{
		"hostname": "rabbitmq." + namespace + ".svc.cluster.local", "vhost": classicBus, "user": classicBus, "password": canaryBus,
	})
	return `"messageBus": {"connectionSecretRef": {"name": "` + classicBus + `"}}`
}

// typeOf returns the type of a queue.
func typeOf(ctx context.Context, namespace, path string) string {
	GinkgoHelper()
	var queue struct{ Type string }
	Expect(rabbit(ctx, namespace, http.MethodGet, path, nil, &queue)).To(Equal(http.StatusOK))
	return queue.Type
}

// moveDatabase moves the database of cell2 to a second MariaDB with the steps of
// docs/guides/cells.md, and kills the operator meanwhile. It sets the new server before the copy,
// so that the cell must wait. The former server refuses the account of the
// cell from the beginning of the move.
func moveDatabase(ctx context.Context, namespace string, patch func(context.Context, string)) {
	GinkgoHelper()
	const database = "demo_cell2"
	deploySecondMariaDB(ctx, namespace)
	accounts := query(ctx, namespace, `SELECT User FROM mysql.user WHERE User LIKE 'demo\_cell2%'`)
	Expect(accounts).To(HaveLen(1))

	By("moving the database of a cell")
	execute(ctx, namespace, "ALTER USER `"+accounts[0]+"` ACCOUNT LOCK", "KILL CONNECTION USER `"+accounts[0]+"`")
	patch(ctx, `[{"op": "add", "path": "/spec/nova/cells/1/database", "value": {"serviceRef": {"name": "`+secondMariaDB+`"}, "adminSecretRef": {"name": "mariadb-admin"}}}]`)
	awaitFalse(ctx, object("NovaCell", namespace, "demo-cell2"), "DatabaseReady", "DatabaseNotCopied", "does not exist")
	copyDatabase(ctx, namespace, database)
	kill(ctx, novaOperator)
	awaitWithin(ctx, patience, "NovaCell", namespace, "demo-cell2", func(g Gomega, o *unstructured.Unstructured) {
		location, _, _ := unstructured.NestedString(o.Object, "status", "database")
		g.Expect(location).To(Equal(secondMariaDB + "." + namespace + ".svc.cluster.local:3306/" + database))
	})
	awaitReady(ctx, "ControlPlane", namespace, "demo")
	Expect(query(ctx, namespace, "SELECT name FROM demo_api.cell_mappings WHERE database_connection LIKE '%"+secondMariaDB+"%'")).To(Equal([]string{"cell2"}))
	execute(ctx, namespace, "DROP USER `"+accounts[0]+"`", "DROP DATABASE "+database)
}
