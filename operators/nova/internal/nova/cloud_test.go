package nova

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
	"asterism.dev/lib/registration/registrationtest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
)

const givenSample = "../../config/samples/nova-given.yaml"

// mariaDB is the only real server of the suite. The tests count hosts and register
// databases in it. Each cell with a connection Secret has a database of its name.
var mariaDB registrationtest.MariaDB

var _ = BeforeSuite(func() {
	enginetest.InstallCRDs(GinkgoTB(), append(siblings, "../../config/crd")...)
	registrationtest.ResolveServices(GinkgoTB())
	mariaDB = registrationtest.StartMariaDB(GinkgoTB())
})

// uuids are the UUIDs of cells that the fake nova-manage prints.
var uuids = map[string]string{
	"cell1":  "8d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a11",
	"cell2":  "9d0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a22",
	"cell10": "ad0c6a52-4c7e-4f0c-9d0b-0f7e1f4b9a33",
}

// releases are the releases of Nova in images.
var releases = map[string]string{
	"quay.example/openstack/nova:26.2.2": "26.2.2 64", nextImage: "26.2.3 64", "quay.example/openstack/nova:27": "27.1.0 66",
	"quay.example/openstack/nova:27.2": "27.2.0 66", "quay.example/openstack/nova:31": "31.0.0 68", "quay.example/openstack/nova:22": "22.4.0 52",
	"quay.example/openstack/nova:broken": "Traceback",
}

// cloud is a world with the operator of Nova, and with fakes of the four other operators
// and of nova-manage.
type cloud struct {
	*enginetest.World
	mu   sync.Mutex
	held map[string]bool // Jobs that do not end, by name without hash
	// jobFailures are the messages of Jobs that fail, by name without hash.
	jobFailures map[string]string
	runs        map[string]int // number of ended runs of a Job, by name without hash
	// api is the schema of the API database, which has the mappings; "" until it has tables.
	api string
	// failures of children, by name: the first condition that is not True, and its message.
	failures map[string][2]string
	readyAPI int32 // ready pods of the API
	// server is a fake of Keystone and of the compute API; secured is one of the API with TLS.
	server     *httptest.Server
	secured    *httptest.Server
	apiStatus  int // of the answer to GET /servers
	noKeystone bool
	// cellsDown leaves out the conductors of the cells, like the real API.
	cellsDown   bool
	apiRequests int
	placement   string            // its endpoint in the catalog
	rows        map[string]string // further services of the compute API: <binary> <host> <state>, by ID
}

func newCloud() *cloud { return runCloud(Service, cell.Service) }

func runCloud(services ...enginetest.Runnable) *cloud {
	c := &cloud{held: map[string]bool{}, runs: map[string]int{}, jobFailures: map[string]string{}, failures: map[string][2]string{}, readyAPI: 1, apiStatus: http.StatusOK}
	c.server = httptest.NewServer(c)
	DeferCleanup(c.server.Close)
	c.World = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{Job: c.manage}, kinds...)
	for _, sibling := range []enginetest.Sibling{
		{Kind: &conductorv1.NovaConductor{}, Conditions: conductorv1.NovaConductorConditions, Report: c.reportConductor},
		{Kind: &computev1.NovaCompute{}, Conditions: computev1.NovaComputeConditions, Report: c.failure},
		{Kind: &schedulerv1.NovaScheduler{}, Conditions: schedulerv1.NovaSchedulerConditions, Report: c.failure},
		{Kind: &metadatav1.NovaMetadata{}, Conditions: metadatav1.NovaMetadataConditions, Report: c.reportMetadata},
		{Kind: &novncproxyv1.NovaNoVNCProxy{}, Conditions: novncproxyv1.NovaNoVNCProxyConditions, Report: c.reportConsole},
		{Kind: &apiv1.NovaAPI{}, Conditions: apiv1.NovaAPIConditions, Report: c.reportAPI},
	} {
		sibling.Start(GinkgoTB(), c.Namespace, kinds...)
	}
	c.Run(services...)
	return c
}

func (c *cloud) reportConductor(obj engine.Object) (condition, message string) {
	condition, message = c.failure(obj)
	if condition == "" && obj.(*conductorv1.NovaConductor).Spec.Rollout == commonv1.RolloutHeld { //nolint:forcetypeassert // the fake has this kind
		return conductorv1.ConditionWorkloadReady, "spec.rollout is Held"
	}
	return condition, message
}

func (c *cloud) reportMetadata(obj engine.Object) (condition, message string) {
	service := obj.(*metadatav1.NovaMetadata) //nolint:forcetypeassert // the fake has this kind
	service.Status.Endpoints = []commonv1.Endpoint{{Interface: commonv1.InterfaceInternal, URL: "http://" + service.Name + ".example.org:8775"}}
	if exposed := service.Spec.Exposure.Type; exposed != "" && exposed != commonv1.ExposureNone {
		public := commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: "https://" + service.Name + ".public.example.org"}
		service.Status.Endpoints = append([]commonv1.Endpoint{public}, service.Status.Endpoints...)
	}
	return c.failure(obj)
}

func (c *cloud) reportConsole(obj engine.Object) (condition, message string) {
	proxy := obj.(*novncproxyv1.NovaNoVNCProxy) //nolint:forcetypeassert // the fake has this kind
	proxy.Status.Endpoints = []commonv1.Endpoint{{Interface: commonv1.InterfacePublic, URL: "https://" + proxy.Name + ".example.org/vnc_lite.html"}}
	return c.failure(obj)
}

func (c *cloud) failure(obj engine.Object) (condition, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	failure := c.failures[obj.GetName()]
	return failure[0], failure[1]
}

// fail sets an object's condition to False, until repair.
func (c *cloud) fail(name, condition, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[name] = [2]string{condition, message}
}

func (c *cloud) repair(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, name)
}

func (c *cloud) scaleAPI(ready int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readyAPI = ready
}

func (c *cloud) reportAPI(obj engine.Object) (condition, message string) {
	api := obj.(*apiv1.NovaAPI) //nolint:forcetypeassert // the fake has this kind
	c.mu.Lock()
	internal := c.server
	if api.Spec.TLSSecretRef != nil {
		internal = c.secured
	}
	api.Status.Endpoints = []commonv1.Endpoint{
		{Interface: commonv1.InterfacePublic, URL: "https://" + api.Name + ".example.org/v2.1"},
		{Interface: commonv1.InterfaceInternal, URL: internal.URL + "/v2.1"},
	}
	api.Status.Replicas, api.Status.ReadyReplicas = 1, c.readyAPI
	c.mu.Unlock()
	return c.failure(obj)
}

// secure serves the API by TLS as well, with a certificate of the authority, for the object that
// names the Secret that secure returns. The Secret has another authority.
func (c *cloud) secure(authority certificatetest.Authority) *corev1.Secret {
	certificate, key := authority.Sign(GinkgoTB(), time.Now().Add(time.Hour), "127.0.0.1")
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(c)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	DeferCleanup(server.Close)
	c.mu.Lock()
	c.secured = server
	c.mu.Unlock()
	secret := &corev1.Secret{ObjectMeta: named("api-tls"), Data: map[string][]byte{
		corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, "ca.crt": certificatetest.NewAuthority(GinkgoTB()).PEM,
	}}
	c.Create(secret)
	return secret
}

// ServeHTTP is a fake of Keystone and of the compute API.
func (c *cloud) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case request.URL.Path == "/v3/auth/tokens" && !c.noKeystone:
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": {"expires_at": "2100-01-01T00:00:00.000000Z", "catalog": [
			{"type": "placement", "endpoints": [{"interface": "internal", "region_id": "RegionOne", "url": %q}]}]}}`, c.placement)
	case request.URL.Path == "/v2.1/servers" && request.Header.Get("X-Auth-Token") == "token":
		c.apiRequests++
		w.WriteHeader(c.apiStatus)
	case request.URL.Path == "/v2.1/os-services" && request.Header.Get("X-Auth-Token") == "token":
		c.listServices(w, request.URL.Query().Get("binary"))
	case request.Method == http.MethodDelete && strings.HasPrefix(request.URL.Path, "/v2.1/os-services/") && request.Header.Get("X-Auth-Token") == "token":
		delete(c.rows, path.Base(request.URL.Path))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// listServices answers as Nova does in a cloud with 1,500 compute hosts: with the services of the
// binary, or with all of them.
func (c *cloud) listServices(w http.ResponseWriter, binary string) {
	services := []map[string]any{}
	add := func(id, of, host, state string) {
		if binary == "" || binary == of {
			services = append(services, map[string]any{
				"id": id, "binary": of, "host": host, "zone": "internal", "status": "enabled", "state": state,
				"updated_at": "2026-01-02T03:04:05.000000", "disabled_reason": nil, "forced_down": false,
			})
		}
	}
	add("super", "nova-conductor", "given-superconductor-0", "up")
	if !c.cellsDown {
		add("c1", "nova-conductor", "given-cell1-conductor-0", "up")
		add("c2", "nova-conductor", "given-cell2-conductor-0", "up")
	}
	for id, row := range c.rows {
		words := strings.Fields(row)
		add(id, words[0], words[1], words[2])
	}
	for i := range 1500 {
		add(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "nova-compute", fmt.Sprintf("compute-%d.rack-%d.hall-1.datacenter-1.example.org", i, i%40), "up")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"services": services})
}

// answers sets whether Keystone answers, and the status of the compute API.
func (c *cloud) answers(keystone bool, apiStatus int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noKeystone, c.apiStatus = !keystone, apiStatus
}

func (c *cloud) setCellsDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cellsDown = down
}

// setRows sets further services of the compute API.
func (c *cloud) setRows(rows map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = rows
}

// rowIDs returns the IDs of these services.
func (c *cloud) rowIDs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.rows))
}

// publish sets the endpoint of Placement in the catalog.
func (c *cloud) publish(placement string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.placement = placement
}

func (c *cloud) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiRequests
}

// manage is a fake of nova-manage.
func (c *cloud) manage(pod *corev1.Pod) (code int32, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	job := pod.Labels[batchv1.JobNameLabel]
	run := job[:strings.LastIndex(job, "-")]
	if c.held[run] {
		return -1, ""
	}
	if failure := c.jobFailures[run]; failure != "" {
		c.runs[run]++
		return 2, failure
	}
	command := pod.Spec.Containers[0].Command
	last := command[len(command)-1]
	switch {
	case strings.HasSuffix(run, "-release"):
		message = releases[pod.Spec.Containers[0].Image]
	case strings.HasSuffix(run, "-check"):
		message = "passed"
	case strings.HasSuffix(run, "-migrate"):
		message = "done"
	case strings.HasSuffix(run, "-archive"):
		message = "archived 12 rows, 3 s"
	}
	for name, uuid := range uuids {
		switch {
		case strings.HasSuffix(run, "-"+name+"-map"):
			if c.api == "" {
				return -1, ""
			}
			if known := command[len(command)-2]; known != "" {
				uuid = known
			}
			mariaDB.Exec(GinkgoTB(), fmt.Sprintf("INSERT INTO %s.cell_mappings (uuid, disabled, id) VALUES ('%s', %t, %s) ON DUPLICATE KEY UPDATE disabled = VALUES(disabled)",
				c.api, uuid, last == "disable", idOf(name)))
			message = uuid
		case strings.HasSuffix(run, "-"+name+"-discover"):
			found := "mapped = 0"
			if strings.Contains(strings.Join(command, " "), "--by-service") { // each host has a compute service
				found = "deleted = 0"
			}
			mariaDB.Exec(GinkgoTB(), fmt.Sprintf("INSERT IGNORE INTO %s.host_mappings SELECT %s, host FROM %s.compute_nodes WHERE %s", c.api, idOf(name), c.schema(name), found))
		case strings.HasSuffix(run, "-"+name+"-unmap"):
			mariaDB.Exec(GinkgoTB(), fmt.Sprintf("DELETE FROM %s.cell_mappings WHERE uuid = '%s'", c.api, last))
			message = "unmapped"
		}
	}
	c.runs[run]++
	return 0, message
}

// syncAPI creates the tables of the API database that the operator reads.
func (c *cloud) syncAPI(schema string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mariaDB.Exec(GinkgoTB(), "CREATE TABLE "+schema+".cell_mappings (uuid VARCHAR(36) PRIMARY KEY, disabled BOOLEAN, id INT, name VARCHAR(255), database_connection TEXT)",
		"CREATE TABLE "+schema+".host_mappings (cell_id INT, host VARCHAR(255), UNIQUE (cell_id, host))",
		"CREATE TABLE "+schema+".instance_mappings (cell_id INT, queued_for_delete BOOLEAN, instance_uuid VARCHAR(36) INVISIBLE)")
	c.api = schema
}

// syncCell creates the tables of a cell's database that the operator reads.
func syncCell(schema string) {
	mariaDB.Exec(GinkgoTB(), "CREATE TABLE "+schema+".compute_nodes (host VARCHAR(255), mapped INT, deleted INT)",
		"CREATE TABLE "+schema+".instances (host VARCHAR(255), deleted INT, uuid VARCHAR(36) INVISIBLE)",
		"CREATE TABLE "+schema+".services (version INT, deleted INT, `binary` VARCHAR(255))")
}

func (c *cloud) hold(run string, hold bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[run] = hold
}

// setPhase changes the phase of the only pod of a held Job, by the name of the Job without hash.
func (c *cloud) setPhase(run string, phase corev1.PodPhase) {
	GinkgoHelper()
	enginetest.Eventually(GinkgoTB(), "the pod of the Job has another phase", func() error {
		pods := &corev1.PodList{}
		if err := c.Client.List(context.Background(), pods, client.InNamespace(c.Namespace), client.HasLabels{batchv1.JobNameLabel}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if strings.HasPrefix(pod.Labels[batchv1.JobNameLabel], run+"-") && pod.DeletionTimestamp == nil {
				before := pod.DeepCopy()
				pod.Status.Phase = phase
				return c.Client.Status().Patch(context.Background(), &pod, client.MergeFrom(before))
			}
		}
		return errors.New("no pod")
	})
}

// ended returns the number of ended runs of a Job.
func (c *cloud) ended(run string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

// given creates the Secrets of the sample with connection Secrets, and returns its Nova.
// The database of its cell is in the real server and has the host compute-0.
func (c *cloud) given() *novav1.Nova {
	for _, sample := range enginetest.ReadSamples(GinkgoTB(), givenSample) {
		if sample.GetKind() == "Secret" && sample.GetName() != "cell1-database" {
			secret := &corev1.Secret{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(sample.Object, secret)).To(Succeed())
			if secret.StringData["authURL"] != "" {
				secret.StringData["authURL"] = c.server.URL + "/v3"
			}
			if secret.Name == "api-database" {
				api := c.schema("api")
				mariaDB.Exec(GinkgoTB(), "CREATE DATABASE "+api)
				c.syncAPI(api)
				secret.StringData = databaseSecret(api)
			}
			c.Create(secret)
		}
	}
	c.cellDatabase("cell1")
	return givenNova()
}

// givenCompute creates the Nova of given with a compute in its cell, and waits until it is ready.
func (c *cloud) givenCompute() *novav1.Nova {
	cr := c.given()
	mariaDB.Exec(GinkgoTB(), "INSERT INTO "+c.schema("cell1")+".compute_nodes VALUES ('given-cell1-fake', 0, 0)")
	cr.Spec.Cells[0].Computes = []novav1.Compute{{Name: "fake", ComputeSettings: sharedv1.ComputeSettings{Driver: sharedv1.ComputeFake}}}
	c.Create(cr)
	enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
	return cr
}

// states returns the states of computes by name.
func states(computes []novav1.Compute) map[novav1.ComputeName]novav1.ComputeState {
	all := map[novav1.ComputeName]novav1.ComputeState{}
	for _, compute := range computes {
		all[compute.Name] = compute.State
	}
	return all
}

func givenNova() *novav1.Nova {
	cr := &novav1.Nova{}
	enginetest.DecodeSample(GinkgoTB(), givenSample, "Nova", cr)
	return cr
}

// idOf returns the ID of a cell in the API database.
func idOf(cell string) string { return strings.TrimPrefix(cell, "cell") }

// schema returns a unique name for the database of a cell.
func (c *cloud) schema(name string) string {
	return strings.ReplaceAll(c.Namespace, "-", "_") + "_" + name
}

func (c *cloud) cellDatabase(name string) {
	schema := c.schema(name)
	mariaDB.Exec(GinkgoTB(), "CREATE DATABASE "+schema)
	syncCell(schema)
	mariaDB.Exec(GinkgoTB(), "INSERT INTO "+schema+".compute_nodes VALUES ('compute-0', 1, 0)", "INSERT INTO "+c.api+".host_mappings VALUES ("+idOf(name)+", 'compute-0')")
	c.Create(&corev1.Secret{ObjectMeta: named(name + "-database"), StringData: databaseSecret(schema)})
}

func databaseSecret(schema string) map[string]string {
	return map[string]string{
		"hostname": mariaDB.Host, "port": mariaDB.Port, "user": mariaDB.User, "password": mariaDB.Password, "database": schema,
	}
}

// cellBus creates the Secret of the bus of cell2.
func (c *cloud) cellBus() { c.busOf("cell2") }

func (c *cloud) busOf(cell string) {
	c.Create(&corev1.Secret{ObjectMeta: named(cell + "-bus"), StringData: map[string]string{"hostname": "mq.example.org", "user": cell, "password": "word", "vhost": cell}})
}

// anotherCell returns cell2, with connection Secrets of its own.
func anotherCell() novav1.Cell { return givenCell("cell2") }

func givenCell(name novav1.CellName) novav1.Cell {
	ref := func(purpose string) registrationv1.Connection {
		return registrationv1.Connection{ConnectionSecretRef: &commonv1.SecretReference{Name: string(name) + "-" + purpose}}
	}
	database := ref("database")
	return novav1.Cell{Name: name, Database: &database, MessageBus: &novav1.CellMessageBus{Connection: ref("bus")}}
}

func (c *cloud) superconductor(cr *novav1.Nova) *conductorv1.NovaConductor {
	conductor := superconductorNamed(cr)
	Expect(c.Read(conductor)).To(BeTrue())
	return conductor
}

// triggers returns the restart triggers of the services, and checks that all services have
// the same.
func (c *cloud) triggers(cr *novav1.Nova) map[string]string {
	all := c.allTriggers(cr)
	Expect(all).To(HaveEach(Equal(all[0])))
	return all[0]
}

// allTriggers returns the restart triggers of each service.
func (c *cloud) allTriggers(cr *novav1.Nova) []map[string]string {
	superconductor := c.superconductor(cr)
	scheduler, api, metadata := &schedulerv1.NovaScheduler{ObjectMeta: named(schedulerName(cr))}, &apiv1.NovaAPI{ObjectMeta: named(apiName(cr))}, &metadatav1.NovaMetadata{ObjectMeta: named(metadataName(cr))}
	for _, service := range []client.Object{scheduler, api, metadata} {
		Expect(c.Read(service)).To(BeTrue())
	}
	return []map[string]string{superconductor.Spec.RestartTriggers, scheduler.Spec.RestartTriggers, api.Spec.RestartTriggers, metadata.Spec.RestartTriggers}
}

func (c *cloud) cell1(cr *novav1.Nova) *novav1.NovaCell { return c.cell(cr, "cell1") }

func (c *cloud) cell(cr *novav1.Nova, name string) *novav1.NovaCell {
	child := &novav1.NovaCell{ObjectMeta: named(cr.Name + "-" + name)}
	Expect(c.Read(child)).To(BeTrue())
	return child
}

// nothingLeft waits until all children of the owners are deleted, and checks that no Secret
// has an owner.
func (c *cloud) nothingLeft(owners ...client.Object) {
	for _, owner := range owners {
		c.AwaitNothing(owner.GetUID(), Service.Owns...)
	}
	secrets := &corev1.SecretList{}
	Expect(c.Client.List(context.Background(), secrets, client.InNamespace(c.Namespace))).To(Succeed())
	for _, secret := range secrets.Items {
		Expect(secret.Labels).NotTo(HaveKey("asterism.dev/owner-uid"), "Secret "+secret.Name)
	}
}
