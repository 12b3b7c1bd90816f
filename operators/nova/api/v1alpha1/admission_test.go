package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/enginetest"
)

func TestAdmission(t *testing.T) {
	enginetest.Conventions(t, "../../config/crd")
	RegisterFailHandler(Fail)
	RunSpecs(t, "Nova and NovaCell admission")
}

const (
	eitherDatabase = "must have either serviceRef or host with adminSecretRef, if the operator registers the databases, or apiDatabaseSecretRef and cell0DatabaseSecretRef"
	eitherAccounts = "must have either serviceRef or host with adminSecretRef, if the operator registers the account, or connectionSecretRef"
	adminTogether  = "must have adminSecretRef together with serviceRef or host"
	reservedFiles  = "must not end in .conf.d or -ca.crt"
	movedBus       = "must not change from a server to a Secret"
	globalDatabase = "must not use the Secret of spec.database.apiDatabaseSecretRef or cell0DatabaseSecretRef for a cell"
	globalHost     = "must not use metadata.exposure.hostname for the metadata services of cells as well"
	globalBus      = "must not use the Secret of spec.messageBus.connectionSecretRef for a cell"
)

// cells returns a patch with n cells that have only a name.
func cells(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "{name: c%d},", i)
	}
	return "spec: {cells: [" + list.String() + "]}"
}

var _ = Describe("Nova", Ordered, func() {
	var (
		server            enginetest.Admission
		registered, given *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		registered = enginetest.ReadSample(GinkgoTB(), "../../config/samples/nova.yaml", "Nova")
		given = enginetest.ReadSample(GinkgoTB(), "../../config/samples/nova-given.yaml", "Nova")
	})

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(registered, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("a name of 24 characters", `metadata: {name: a23456789012345678901234}`),
		Entry("workers and threads", `spec: {api: {workers: 4}, metadata: {workers: 2, threads: 1}}`),
		Entry("no prefix", `spec: {namePrefix: null}`),
		Entry("a policy of upgrades", `spec: {upgradePolicy: {skipCheck: [hw_machine_type unset], pauseBefore: Computes}}`),
		Entry("the upkeep of the databases", `spec: {upkeep: {}}`),
		Entry("a purge together with the archive", `spec: {upkeep: {dailyAt: "23:59", archiveAfterDays: 0, purgeAfterDays: 0, batchSize: 100000}}`),
		Entry("64 cells", cells(64)),
		Entry("classic queues", `spec: {messageBus: {queueType: Classic}}`),
		Entry("hyphens", `spec: {cells: [{name: cell-1, computes: [{name: compute-a, driver: Fake}, {name: compute, driver: Fake}]}, {name: cell-10}]}`),
		Entry("only quorum queues", `spec: {messageBus: {queueType: AllQuorum}}`),
		Entry("servers without Services", `spec: {database: {serviceRef: null, host: db.example.org}, messageBus: {serviceRef: null, host: "2001:db8::1", port: 5671, managementPort: 15671}}`),
		Entry("a cell with its own bus", `spec: {cells: [{name: cell1, messageBus: {serviceRef: {name: rabbitmq-cell1}, adminSecretRef: {name: rabbitmq-cell1-default-user}, managementPort: 15672}}]}`),
		Entry("two computes of a cell", `spec: {cells: [{name: cell1, computes: [{name: fake, driver: Fake, pod: {nodeSelector: {}}}, {name: rack1, driver: Ironic, ironic: {secretRef: {name: ironic}, shard: rack1}}]}]}`),
		Entry("a cell with consoles", `spec: {cells: [{name: cell1, noVNCProxy: {}}]}`),
		Entry("a console proxy that serves TLS", `spec: {cells: [{name: cell1, noVNCProxy: {replicas: 2, tlsSecretRef: {name: console}, exposure: {type: LoadBalancer}}}]}`),
		Entry("metadata services that share an exposure without a host name", `spec: {metadata: {mode: PerCell, exposure: {type: LoadBalancer}}, cells: [{name: cell1}, {name: cell2, metadataExposure: {type: None}}]}`),
		Entry("metadata services with a host name each", `spec: {metadata: {mode: GlobalAndPerCell, exposure: {hostname: a.example.org}}, cells: [{name: cell1, metadataExposure: {hostname: b.example.org}}, {name: cell2, metadataExposure: {type: LoadBalancer}}]}`),
		Entry("an exposed global metadata service", `spec: {metadata: {exposure: {type: Ingress, hostname: a.example.org}}}`),
		Entry("an API and metadata services that serve TLS", `spec: {api: {tlsSecretRef: {name: api-tls}}, metadata: {mode: PerCell, tlsSecretRef: {name: metadata-tls}}}`),
		Entry("a cell with the connection Secret of a database", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: cell1-database}}}]}`),
	)

	It("accepts connection Secrets for everything", func() {
		_, err := server.Create(given, `{}`)
		Expect(err).NotTo(HaveOccurred())
	})

	It("sets defaults for absent fields except replicas", func() {
		stored, err := server.Create(given, `{}`)
		Expect(err).NotTo(HaveOccurred())
		spec := stored.Object["spec"]
		Expect(spec).To(And(
			HaveKeyWithValue("deletionPolicy", "Retain"),
			HaveKeyWithValue("messageBus", HaveKeyWithValue("queueType", "Quorum")),
			HaveKeyWithValue("identity", HaveKeyWithValue("region", "RegionOne")),
			HaveKeyWithValue("metadata", map[string]any{"mode": "Global"}),
			HaveKeyWithValue("api", map[string]any{"exposure": map[string]any{"type": "Automatic"}}),
			HaveKeyWithValue("cells", ConsistOf(And(HaveKeyWithValue("apiDatabaseAccess", "Enabled"), HaveKeyWithValue("scheduling", "Enabled")))),
		))
		Expect(fmt.Sprint(spec)).NotTo(ContainSubstring("replicas"))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(registered, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a name of 25 characters", `metadata: {name: a234567890123456789012345}`, "metadata.name must be at most 24 lower-case letters"),
		Entry("a name with a dot", `metadata: {name: nova.demo}`, "metadata.name must be at most 24 lower-case letters"),
		Entry("an empty image", `spec: {containerImage: ""}`, "spec.containerImage in body should be at least 1 chars long"),

		Entry("too many workers", `spec: {api: {workers: 65}}`, "spec.api.workers in body should be less than or equal to 64"),
		Entry("no cells", `spec: {cells: []}`, "spec.cells in body should have at least 1 items"),
		Entry("65 cells", cells(65), "Too many: 65: must have at most 64 items"),
		Entry("two cells of one name", `spec: {cells: [{name: cell1}, {name: cell1}]}`, `Duplicate value: {"name":"cell1"}`),
		Entry("a cell named like another one", `spec: {cells: [{name: cell-1}, {name: cell-1-a}]}`, "must not have a cell with the name of another cell and '-'"),
		Entry("a cell whose name ends with a hyphen", `spec: {cells: [{name: cell-}]}`, "spec.cells[0].name in body should match"),
		Entry("a compute whose name ends with a hyphen", `spec: {cells: [{name: cell1, computes: [{name: compute-, driver: Fake}]}]}`, "spec.cells[0].computes[0].name in body should match"),
		Entry("a cell named in capitals", `spec: {cells: [{name: Cell1}]}`, "spec.cells[0].name in body should match"),
		Entry("a cell's name of 16 characters", `spec: {cells: [{name: c234567890123456}]}`, "spec.cells[0].name: Too long: may not be more than 15"),
		Entry("unknown access to the API database", `spec: {cells: [{name: cell1, apiDatabaseAccess: "No"}]}`, `Unsupported value: "No": supported values: "Enabled", "Disabled"`),
		Entry("an account for Glance", `spec: {openStackServices: [{name: Glance, accountSecretRef: {name: glance}}]}`, "must not have accountSecretRef for Glance"),
		Entry("a service type of Barbican", `spec: {openStackServices: [{name: Barbican, serviceType: key-manager}]}`, "must not have serviceType for Barbican"),
		Entry("an unknown OpenStack service", `spec: {openStackServices: [{name: UnifiedLimits}]}`, `Unsupported value: "UnifiedLimits"`),
		Entry("two entries for one OpenStack service", `spec: {openStackServices: [{name: Cinder}, {name: Cinder, regionName: RegionTwo}]}`, `Duplicate value: {"name":"Cinder"}`),
		Entry("limits without an endpoint", `spec: {unifiedLimits: {accountSecretRef: {name: limits}}}`, "spec.unifiedLimits.endpointID: Required value"),
		Entry("unknown scheduling", `spec: {cells: [{name: cell1, scheduling: "No"}]}`, `Unsupported value: "No": supported values: "Enabled", "Disabled"`),
		Entry("an unknown mode of metadata", `spec: {metadata: {mode: Cell}}`, `Unsupported value: "Cell": supported values: "Global", "PerCell", "GlobalAndPerCell"`),
		Entry("a host name for the metadata services of cells", `spec: {metadata: {mode: PerCell, exposure: {hostname: a.example.org}}}`, globalHost),
		Entry("a host name for the global metadata service and that of a cell", `spec: {metadata: {exposure: {hostname: a.example.org}}, cells: [{name: cell1, metadataExposure: {hostname: a.example.org}}]}`, globalHost),
		Entry("a host name for the metadata services of two cells", `spec: {cells: [{name: cell1, metadataExposure: {hostname: a.example.org}}, {name: cell2, metadataExposure: {hostname: a.example.org}}]}`, "must have a different metadataExposure.hostname for every cell"),

		Entry("two computes of one name", `spec: {cells: [{name: cell1, computes: [{name: fake, driver: Fake}, {name: fake, driver: Fake}]}]}`, `Duplicate value: {"name":"fake"}`),
		Entry("a compute's name of 12 characters", `spec: {cells: [{name: cell1, computes: [{name: c23456789012, driver: Fake}]}]}`, "spec.cells[0].computes[0].name: Too long: may not be more than 11"),
		Entry("a compute with the name of another service", `spec: {cells: [{name: cell1, computes: [{name: conductor, driver: Fake}]}]}`, "must not be one of the reserved names conductor, metadata, novncproxy"),
		Entry("a compute with the name of an object of another service", `spec: {cells: [{name: cell1, computes: [{name: metadata-a, driver: Fake}]}]}`, "nor begin with one and '-'"),
		Entry("a compute without a driver", `spec: {cells: [{name: cell1, computes: [{name: fake}]}]}`, "spec.cells[0].computes[0].driver: Required value"),
		Entry("a compute for an Ironic without its Secret", `spec: {cells: [{name: cell1, computes: [{name: rack1, driver: Ironic}]}]}`, "must have ironic for driver Ironic and for no other driver"),
		Entry("consoles with two certificates", `spec: {cells: [{name: cell1, noVNCProxy: {tlsSecretRef: {name: a}, exposure: {tlsSecretRef: {name: b}}}}]}`, "must not have tlsSecretRef together with exposure.tlsSecretRef for a Route"),
		Entry("replicas of a compute", `spec: {cells: [{name: cell1, computes: [{name: fake, driver: Fake, replicas: 2}]}]}`, `unknown field "spec.cells[0].computes[0].replicas"`),

		Entry("a database server without its administrator", `spec: {database: {adminSecretRef: null}}`, adminTogether),
		Entry("a Service and a host", `spec: {database: {host: db.example.org}}`, "must have either serviceRef or host, not both"),
		Entry("a port of a Service", `spec: {messageBus: {port: 5671}}`, "must not have port without host"),
		Entry("a host with a port in it", `spec: {database: {serviceRef: null, host: "db.example.org:3306"}}`, "must be an IP address or a complete DNS name"),
		Entry("a host that a namespace could answer for", `spec: {database: {serviceRef: null, host: mariadb.internal}}`, "must be an IP address or a complete DNS name"),
		Entry("a host with an empty label", `spec: {messageBus: {serviceRef: null, host: bus..example.org}}`, "must be an IP address or a complete DNS name"),
		Entry("an administrator without a database server", `spec: {database: {serviceRef: null}}`, adminTogether),
		Entry("no database", `spec: {database: {serviceRef: null, adminSecretRef: null}}`, eitherDatabase),
		Entry("a database server and connection Secrets", `spec: {database: {apiDatabaseSecretRef: {name: a}, cell0DatabaseSecretRef: {name: b}}}`, eitherDatabase),
		Entry("an API database without cell0", `spec: {database: {serviceRef: null, adminSecretRef: null, apiDatabaseSecretRef: {name: a}}}`, "must have apiDatabaseSecretRef and cell0DatabaseSecretRef together"),
		Entry("a pause before a phase that changes nothing", `spec: {upgradePolicy: {pauseBefore: Checking}}`, "must not be Checking"),
		Entry("a pause before an unknown phase", `spec: {upgradePolicy: {pauseBefore: Done}}`, "Unsupported value"),
		Entry("a check without a name", `spec: {upgradePolicy: {skipCheck: [""]}}`, "should be at least 1 chars long"),
		Entry("an hour that no day has", `spec: {upkeep: {dailyAt: "24:00"}}`, "must be a time of day in UTC, as HH:MM from 00:00 to 23:59"),
		Entry("a purge before the archive", `spec: {upkeep: {archiveAfterDays: 10, purgeAfterDays: 9}}`, "must not have purgeAfterDays below archiveAfterDays"),
		Entry("a purge before the archive by default", `spec: {upkeep: {purgeAfterDays: 29}}`, "must not have purgeAfterDays below archiveAfterDays"),
		Entry("an archive of the future", `spec: {upkeep: {archiveAfterDays: -1}}`, "spec.upkeep.archiveAfterDays in body should be greater than or equal to 0"),
		Entry("a batch without rows", `spec: {upkeep: {batchSize: 0}}`, "spec.upkeep.batchSize in body should be greater than or equal to 1"),
		Entry("a batch of too many rows", `spec: {upkeep: {batchSize: 100001}}`, "spec.upkeep.batchSize in body should be less than or equal to 100000"),
		Entry("a prefix in capitals", `spec: {namePrefix: Demo}`, "spec.namePrefix in body should match"),
		Entry("a prefix of 25 characters", `spec: {namePrefix: a234567890123456789012345}`, "spec.namePrefix: Too long: may not be more than 24"),

		Entry("a bus without its administrator", `spec: {messageBus: {adminSecretRef: null}}`, adminTogether),
		Entry("no bus", `spec: {messageBus: {serviceRef: null, adminSecretRef: null}}`, eitherAccounts),
		Entry("a RabbitMQ and a connection Secret", `spec: {messageBus: {connectionSecretRef: {name: bus}}}`, eitherAccounts),
		Entry("port 0", `spec: {messageBus: {managementPort: 0}}`, "managementPort in body should be greater than or equal to 1"),
		Entry("an unknown type of queue", `spec: {messageBus: {queueType: Mirrored}}`, `supported values: "Quorum", "AllQuorum", "Classic"`),

		Entry("no identity", `spec: {identity: {adminSecretRef: null}}`, "must have either adminSecretRef, if the operator registers the user and the endpoints, or connectionSecretRef"),
		Entry("an administrator of Keystone and a connection Secret", `spec: {identity: {connectionSecretRef: {name: nova-identity}}}`, "must have either adminSecretRef, if the operator registers the user and the endpoints, or connectionSecretRef"),

		Entry("a cell's database server without its administrator", `spec: {cells: [{name: cell1, database: {serviceRef: {name: mariadb}}}]}`, adminTogether),
		Entry("a cell's empty database", `spec: {cells: [{name: cell1, database: {}}]}`, eitherAccounts),
		Entry("a cell's bus without its address", `spec: {cells: [{name: cell1, messageBus: {adminSecretRef: {name: rabbitmq}}}]}`, adminTogether),
		Entry("a management port with a connection Secret of a cell's bus", `spec: {cells: [{name: cell1, messageBus: {connectionSecretRef: {name: bus}, managementPort: 15672}}]}`, "must not have managementPort together with connectionSecretRef"),
		Entry("two cells with the same connection Secret of a database", `
spec:
  cells:
  - {name: cell1, database: {connectionSecretRef: {name: same}}}
  - {name: cell2, database: {connectionSecretRef: {name: same}}}
`, "must have a different database.connectionSecretRef for every cell"),
		Entry("two cells with the same connection Secret of a vhost", `
spec:
  cells:
  - {name: cell1, messageBus: {connectionSecretRef: {name: same}}}
  - {name: cell2, messageBus: {connectionSecretRef: {name: same}}}
`, "must have a different messageBus.connectionSecretRef for every cell"),

		Entry("an extra file named as the directory of options", `spec: {scheduler: {extraFiles: [{name: nova.conf.d, content: ""}]}}`, reservedFiles),
		Entry("an extra file named as the CA of a database", `spec: {api: {extraFiles: [{name: api_database-ca.crt, content: ""}]}}`, reservedFiles),
		Entry("an extra file named as the CA of a bus", `spec: {cells: [{name: cell1, conductor: {extraFiles: [{name: messagebus-ca.crt, content: ""}]}}]}`, reservedFiles),

		Entry("devices for the conductor of a cell", `spec: {cells: [{name: cell1, conductor: {resources: {claims: [{name: gpu}]}}}]}`, "spec.cells[0].conductor.resources: Invalid value: must not have claims: the pods get no devices"),
		Entry("an endpoint that is no URL", `spec: {api: {endpoints: [{interface: Public, url: nova.example.org}]}}`, "spec.api.endpoints[0].url in body should match"),
		Entry("an endpoint with a password", `spec: {api: {endpoints: [{interface: Public, url: "https://me:pw@nova.example.org"}]}}`, "spec.api.endpoints[0].url in body should match"),
		Entry("two endpoints of one interface", `spec: {api: {endpoints: [{interface: Public, url: "https://a"}, {interface: Public, url: "https://b"}]}}`, `Duplicate value: {"interface":"Public"}`),
	)

	DescribeTable("refuses the reserved cell name", func(name string) {
		_, err := server.Create(registered, `spec: {cells: [{name: `+name+`}]}`)
		Expect(err).To(MatchError(ContainSubstring("must not be one of the reserved names cell0, api,")))
	},
		Entry(nil, "cell0"), Entry(nil, "api-database"), Entry(nil, "api"), Entry(nil, "scheduler"), Entry(nil, "metadata"),
		Entry(nil, "conductor"), Entry(nil, "superconductor"), Entry(nil, "identity"), Entry(nil, "messagebus"),
	)

	DescribeTable("refuses with connection Secrets", func(patch, message string) {
		_, err := server.Create(given, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a cell without a database", `spec: {cells: [{name: cell1, messageBus: {connectionSecretRef: {name: bus1}}}]}`, "every cell must have a database of its own"),
		Entry("a cell without a bus", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: db1}}}]}`, "every cell must have a messageBus of its own"),
		Entry("a prefix", `spec: {namePrefix: demo}`, "must not have namePrefix if every connection has a connectionSecretRef"),
		Entry("a management port", `spec: {messageBus: {managementPort: 15672}}`, "must not have managementPort together with connectionSecretRef"),
		Entry("a cell on the API database", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: api-database}}, messageBus: {connectionSecretRef: {name: bus1}}}]}`, globalDatabase),
		Entry("a cell on cell0", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: cell0-database}}, messageBus: {connectionSecretRef: {name: bus1}}}]}`, globalDatabase),
		Entry("a cell on the global vhost", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: db1}}, messageBus: {connectionSecretRef: {name: bus}}}]}`, globalBus),
	)

	DescribeTable("accepts a prefix with connection Secrets if the operator registers", func(patch string) {
		_, err := server.Create(given, `{spec: {namePrefix: demo, `+patch+`}}`)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("databases", `database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}, apiDatabaseSecretRef: null, cell0DatabaseSecretRef: null}`),
		Entry("vhosts", `messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq}, connectionSecretRef: null}`),
		Entry("the account at Keystone", `identity: {adminSecretRef: {name: keystone-admin}, connectionSecretRef: null}`),
		Entry("the database of a cell", `cells: [{name: cell1, database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}, messageBus: {connectionSecretRef: {name: cell1-bus}}}]`),
		Entry("the vhost of a cell", `cells: [{name: cell1, database: {connectionSecretRef: {name: cell1-database}}, messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq}}}]`),
	)

	It("accepts 64 cells with connection Secrets", func() {
		var list strings.Builder
		for i := range 64 {
			fmt.Fprintf(&list, "{name: c%[1]d, database: {connectionSecretRef: {name: db%[1]d}}, messageBus: {connectionSecretRef: {name: bus%[1]d}}},", i)
		}
		_, err := server.Create(given, "spec: {cells: ["+list.String()+"]}")
		Expect(err).NotTo(HaveOccurred())
	})

	const (
		moved = "must not change from a server to Secrets"
		cell1 = `{name: cell1, conductor: {replicas: 2}}`
		cell2 = `{name: cell2, database: {serviceRef: {name: mariadb-cell2}, adminSecretRef: {name: mariadb-cell2-admin}}}`
	)
	DescribeTable("on update refuses", func(patch, message string) {
		_, err := server.Update(registered, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("another prefix", `spec: {namePrefix: other}`, "must not change namePrefix"),
		Entry("removal of the prefix", `spec: {namePrefix: null}`, "must not change namePrefix"),
		Entry("another region", `spec: {identity: {region: RegionTwo}}`, "must not change: the endpoints in the catalog"),
		Entry("a given account at Keystone", `spec: {identity: {adminSecretRef: null, connectionSecretRef: {name: other}}}`, "must not change between adminSecretRef and connectionSecretRef"),
		Entry("another type of queue", `spec: {messageBus: {queueType: Classic}}`, "must not change: queues of another type require new vhosts"),
		Entry("a change to connection Secrets of databases", `spec: {database: {serviceRef: null, adminSecretRef: null, apiDatabaseSecretRef: {name: a}, cell0DatabaseSecretRef: {name: b}}}`, moved),
		Entry("removal of every cell", `spec: {cells: []}`, "spec.cells in body should have at least 1 items"),
		Entry("a change to a connection Secret of the bus", `spec: {messageBus: {serviceRef: null, adminSecretRef: null, managementPort: null, connectionSecretRef: {name: bus}}, cells: [{name: cell1, messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq}}}]}`, movedBus),
	)

	It("on update accepts a list without a compute, which the operator checks", func() {
		with := registered.DeepCopy()
		cell := map[string]any{"name": "cell1", "computes": []any{map[string]any{"name": "fake", "driver": "Fake"}}}
		Expect(unstructured.SetNestedSlice(with.Object, []any{cell}, "spec", "cells")).To(Succeed())
		_, err := server.Update(with, `spec: {cells: [{name: cell1}]}`)
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("on update accepts", func(patch string) {
		_, err := server.Update(registered, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("another administrator", `spec: {database: {adminSecretRef: {name: other}}, messageBus: {adminSecretRef: {name: other}}, identity: {adminSecretRef: {name: other}}}`),
		Entry("another address of the servers", `spec: {database: {serviceRef: null, host: db.example.org}, messageBus: {serviceRef: {name: other}}}`),
		Entry("an added cell, and another order", `spec: {cells: [{name: cell3}, `+cell2+`, `+cell1+`]}`),
		Entry("removal of a cell, which the operator checks", `spec: {cells: [`+cell1+`]}`),
		Entry("another cell instead", `spec: {cells: [`+cell1+`, {name: cell3}]}`),
		Entry("a cell without access to the API database", `spec: {cells: [{name: cell1, apiDatabaseAccess: Disabled, scheduling: Disabled, metadataSecretRef: {name: shared}}, `+cell2+`]}`),
		Entry("other OpenStack services", `spec: {openStackServices: [{name: Barbican, accountSecretRef: {name: barbican}}, {name: Glance, regionName: RegionTwo, interface: Public, serviceType: image, endpointOverride: "https://glance.example.org"}], unifiedLimits: {endpointID: 3b9a1f0c}}`),
		Entry("metadata per cell", `spec: {metadata: {mode: PerCell}}`),
		Entry("another management port", `spec: {messageBus: {managementPort: 15671}}`),
		Entry("another administrator of a cell's database", `spec: {cells: [`+cell1+`, {name: cell2, database: {serviceRef: {name: mariadb-cell2}, adminSecretRef: {name: other}}}]}`),
		Entry("another image", `spec: {containerImage: "quay.example/openstack/nova:26.2.3"}`),
		Entry("another deletion policy", `spec: {deletionPolicy: Delete}`),
		Entry("a cell on the default database", `spec: {cells: [`+cell1+`, {name: cell2}]}`),
		Entry("a cell on its own database", `spec: {cells: [{name: cell1, database: {serviceRef: {name: own}, adminSecretRef: {name: own}}}, `+cell2+`]}`),
		Entry("a cell on another database", `spec: {cells: [`+cell1+`, {name: cell2, database: {serviceRef: {name: other}, adminSecretRef: {name: mariadb-cell2-admin}}}]}`),
		Entry("a cell on the database of a connection Secret", `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: database}}}, `+cell2+`]}`),
		Entry("a cell on its own bus", `spec: {cells: [{name: cell1, messageBus: {serviceRef: {name: own}, adminSecretRef: {name: own}}}, `+cell2+`]}`),
		Entry("a cell on the bus of a connection Secret", `spec: {cells: [{name: cell1, messageBus: {connectionSecretRef: {name: bus}}}, `+cell2+`]}`),
	)

	It("accepts another host or port of the servers", func() {
		hosts, err := server.Create(registered, `{metadata: {name: hosts}, spec: {database: {serviceRef: null, host: db.example.org, port: 3306}, messageBus: {serviceRef: null, host: bus.example.org, port: 5672}}}`)
		Expect(err).NotTo(HaveOccurred())
		for _, patch := range []string{`database: {host: other.example.org}`, `database: {port: 3307}`, `messageBus: {host: other.example.org}`, `messageBus: {port: 5671}`} {
			_, err := server.Update(hosts, `spec: {`+patch+`}`)
			Expect(err).NotTo(HaveOccurred(), patch)
		}
	})

	It("refuses other connection Secrets of the Nova", func() {
		_, err := server.Update(given, `spec: {database: {apiDatabaseSecretRef: {name: other}}}`)
		Expect(err).To(MatchError(ContainSubstring(moved)))
		_, err = server.Update(given, `spec: {messageBus: {connectionSecretRef: {name: other}}}`)
		Expect(err).To(MatchError(ContainSubstring(movedBus)))
	})

	It("accepts other connection Secrets of a cell", func() {
		_, err := server.Update(given, `spec: {cells: [{name: cell1, database: {connectionSecretRef: {name: other}}, messageBus: {connectionSecretRef: {name: other}}}]}`)
		Expect(err).NotTo(HaveOccurred())
	})

	It("prints its columns", func() {
		Expect(server.Columns(registered, `
release: 26.2.2
upgrade: {phase: Computes, from: 26.2.2, to: 27.1.0, serviceVersion: 66, startedAt: "2026-01-01T00:00:00Z", cells: [{name: cell1, phase: Computes}]}
readyCells: 0
desiredCells: 2
endpoints:
- {interface: Public, url: "https://nova.example.org/v2.1"}
cells:
- {name: cell1, uuid: 8d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a11, ready: Unknown, hosts: {mapped: 0, unmapped: 0}, computeConfigSecretRef: {name: demo-cell1-compute-config}}
- {name: cell2, ready: "False", reason: DatabaseUnreachable, message: connection refused}
conditions:
- {type: Ready, status: "False", reason: CellNotReady, message: "cell2: connection refused", lastTransitionTime: "2026-01-01T00:00:00Z"}
- {type: Available, status: "True", reason: Serving, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "False", "Available": "True", "Cells": 0.0, "Desired": 2.0,
			"Release": "26.2.2", "Upgrade": "Computes",
			"Public": "https://nova.example.org/v2.1", "Message": "cell2: connection refused",
		}))
	})
})

var _ = Describe("NovaCell", Ordered, func() {
	var (
		server enginetest.Admission
		sample *unstructured.Unstructured
	)

	BeforeAll(func() {
		server = enginetest.NewAdmission(GinkgoTB(), "../../config/crd")
		sample = enginetest.ReadSample(GinkgoTB(), "../../config/samples/novacell.yaml", "NovaCell")
	})

	const givenDatabase = `spec: {database: {serviceRef: null, adminSecretRef: null, name: null, connectionSecretRef: {name: cell1-database}}}`

	DescribeTable("accepts", func(patch string) {
		_, err := server.Create(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("the sample", `{}`),
		Entry("a connection Secret of the database", givenDatabase),
		Entry("a connection Secret of the bus", `spec: {messageBus: {serviceRef: null, adminSecretRef: null, vhost: null, connectionSecretRef: {name: cell1-bus}}}`),
		Entry("the longest name", `{metadata: {name: a23456789012345678901234-c23456789012345}, spec: {novaRef: {name: a23456789012345678901234}, cellName: c23456789012345}}`),
	)

	It("on update accepts a list without a compute, which the operator checks", func() {
		with := sample.DeepCopy()
		Expect(unstructured.SetNestedSlice(with.Object, []any{map[string]any{"name": "fake", "driver": "Fake"}}, "spec", "computes")).To(Succeed())
		_, err := server.Update(with, `spec: {computes: null}`)
		Expect(err).NotTo(HaveOccurred())
	})

	It("sets defaults for absent fields except replicas", func() {
		stored, err := server.Create(sample, `spec: {apiDatabaseAccess: null, deletionPolicy: null, messageBus: {queueType: null}, conductor: {replicas: null}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Object["spec"]).To(And(
			HaveKeyWithValue("apiDatabaseAccess", "Enabled"),
			HaveKeyWithValue("deletionPolicy", "Retain"),
			HaveKeyWithValue("messageBus", HaveKeyWithValue("queueType", "Quorum")),
			HaveKeyWithValue("conductor", Not(HaveKey("replicas"))),
		))
	})

	DescribeTable("refuses", func(patch, message string) {
		_, err := server.Create(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("a name without the Nova's name", `metadata: {name: cell1}`, "metadata.name must be <spec.novaRef.name>-<spec.cellName>"),
		Entry("a reserved name", `{metadata: {name: demo-cell0}, spec: {cellName: cell0}}`, "must not be one of the reserved names"),
		Entry("a Nova's name of 25 characters", `{metadata: {name: a234567890123456789012345-cell1}, spec: {novaRef: {name: a234567890123456789012345}}}`, "must name a Nova, whose name has at most 24 characters"),
		Entry("unknown access to the API database", `spec: {apiDatabaseAccess: "No"}`, `supported values: "Enabled", "Disabled"`),
		Entry("a database without a name", `spec: {database: {name: null}}`, "must have name together with adminSecretRef"),
		Entry("a name with a connection Secret of the database", `spec: {database: {serviceRef: null, adminSecretRef: null, connectionSecretRef: {name: cell1-database}}}`, "must have name together with adminSecretRef, and not with connectionSecretRef"),
		Entry("a database server without its administrator", `spec: {database: {adminSecretRef: null}}`, adminTogether),
		Entry("a bus without a vhost", `spec: {messageBus: {vhost: null}}`, "must have vhost together with adminSecretRef"),
		Entry("a bus without its administrator", `spec: {messageBus: {adminSecretRef: null}}`, adminTogether),
		Entry("a vhost with a slash", `spec: {messageBus: {vhost: demo/cell1}}`, "spec.messageBus.vhost in body should match"),
		Entry("a RabbitMQ and a connection Secret", `spec: {messageBus: {connectionSecretRef: {name: cell1-bus}}}`, eitherAccounts),
		Entry("no API database", `spec: {apiDatabaseSecretRef: null}`, "spec.apiDatabaseSecretRef: Required value"),
		Entry("no identity", `spec: {identitySecretRef: null}`, "spec.identitySecretRef: Required value"),
		Entry("no superconductor", `spec: {superconductorRef: null}`, "spec.superconductorRef: Required value"),
	)

	DescribeTable("on update refuses", func(patch, message string) {
		_, err := server.Update(sample, patch)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("another Nova", `spec: {novaRef: {name: other}}`, "must not change: a cell stays with its Nova"),
		Entry("another name", `spec: {cellName: cell2}`, "must not change: database, vhost and mapping are named after it"),
		Entry("another database", `spec: {database: {name: demo_cell2}}`, "must not change name"),
		Entry("another vhost", `spec: {messageBus: {vhost: demo_cell2}}`, "must not change vhost"),
		Entry("another type of queue", `spec: {messageBus: {queueType: Classic}}`, "must not change: queues of another type require a new vhost"),
	)

	DescribeTable("on update accepts", func(patch string) {
		_, err := server.Update(sample, patch)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("another database server", `spec: {database: {serviceRef: {name: other}}}`),
		Entry("a connection Secret of the database", givenDatabase),
		Entry("another bus", `spec: {messageBus: {serviceRef: {name: other}}}`),
		Entry("a connection Secret of the bus", `spec: {messageBus: {serviceRef: null, adminSecretRef: null, vhost: null, connectionSecretRef: {name: cell1-bus}}}`),
	)

	It("accepts new Secrets, image and replicas", func() {
		_, err := server.Update(sample, `
spec:
  database: {adminSecretRef: {name: other}}
  messageBus: {adminSecretRef: {name: other}}
  apiDatabaseSecretRef: {name: demo-api-database-00000000}
  identitySecretRef: {name: demo-identity-00000000}
  conductor: {containerImage: "quay.example/openstack/nova:26.2.3", replicas: 3}
`)
		Expect(err).NotTo(HaveOccurred())
	})

	It("prints its columns", func() {
		Expect(server.Columns(sample, `
uuid: 8d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a11
mapping: {revision: 5f3c9a1b}
scheduling: Enabled
servers: 12
hosts: {mapped: 4, unmapped: 0, names: [compute-1]}
computeConfigSecretRef: {name: demo-cell1-compute-config}
conditions:
- {type: Ready, status: "True", reason: Complete, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)).To(Equal(map[string]any{
			"Ready": "True", "Cell": "cell1", "Hosts": 4.0, "Servers": 12.0, "Scheduling": "Enabled", "UUID": "8d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a11", "Message": "",
		}))
	})
})
