//go:build bench

package trees

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"asterism.dev/lib/registration/registrationtest"
)

//go:embed tree.yaml
var tree string

// address is that of every NovaAPI and of Keystone. Other tests use 127.0.0.1.
const address = "127.77.0.1"

// cloud has what the operators reach besides the API server: MariaDB, and a fake of Keystone, of
// the compute APIs and of nova-manage.
type cloud struct {
	t       *testing.T
	mariaDB registrationtest.MariaDB
	hosts   string // path of the operators' /etc/hosts
	calls   atomic.Int64
}

func startCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{t: t, hosts: filepath.Join(t.TempDir(), "hosts")}
	c.mariaDB = registrationtest.StartMariaDB(t, "--default-storage-engine=MyISAM", "--max-connections=1000")
	c.resolve(0)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address+":8774")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(c)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return c
}

// resolve lets the Services of the NovaAPIs have the address of the fake.
func (c *cloud) resolve(count int) {
	c.t.Helper()
	lines := []byte("127.0.0.1 localhost\n")
	for i := range count {
		lines = fmt.Appendf(lines, "%s %s-api.%s.svc.cluster.local\n", address, nameOf(i), namespaceOf(i))
	}
	if err := os.WriteFile(c.hosts, lines, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// ServeHTTP is a fake of Keystone, and of the compute API of the Nova in the name of the host.
func (c *cloud) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	c.calls.Add(1)
	switch request.URL.Path {
	case "/v3/auth/tokens":
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"token": {"expires_at": "2100-01-01T00:00:00.000000Z"}}`))
	case "/v2.1/os-services":
		name, _, _ := strings.Cut(request.Host, "-api.")
		_, _ = fmt.Fprintf(w, `{"services": [{"id": "1", "binary": %q, "host": "%s-cell1-conductor-0", "state": "up"}]}`, request.URL.Query().Get("binary"), name)
	}
}

// manage is a fake of nova-manage: it returns the message of a Job's pod.
func (c *cloud) manage(pod *corev1.Pod) (code int32, message string) {
	job := pod.Labels[batchv1.JobNameLabel]
	run := job[:strings.LastIndex(job, "-")]
	name, purpose, _ := strings.Cut(run, "-")
	switch {
	case strings.HasSuffix(purpose, "release"):
		return 0, "26.2.2 64"
	case purpose == "cell1-map":
		i, _ := strconv.Atoi(strings.TrimPrefix(name, "t"))
		uuid := fmt.Sprintf("8d0c6a52-4c7e-4f0c-9d0b-%012d", i)
		if err := c.exec("REPLACE INTO " + name + "_api.cell_mappings (uuid, disabled, id) VALUES ('" + uuid + "', FALSE, 1)"); err != nil {
			return 1, err.Error()
		}
		return 0, uuid
	}
	return 0, ""
}

// createDatabases creates the tables that the operator of Nova reads.
func (c *cloud) createDatabases(i int) error {
	api, cell := nameOf(i)+"_api.", nameOf(i)+"_cell1."
	return c.exec("CREATE DATABASE "+nameOf(i)+"_api", "CREATE DATABASE "+nameOf(i)+"_cell1",
		"CREATE TABLE "+api+"cell_mappings (uuid VARCHAR(36) PRIMARY KEY, disabled BOOLEAN, id INT, name VARCHAR(255), database_connection TEXT)",
		"CREATE TABLE "+api+"host_mappings (cell_id INT, host VARCHAR(255))",
		"CREATE TABLE "+api+"instance_mappings (cell_id INT, queued_for_delete BOOLEAN, instance_uuid VARCHAR(36))",
		"CREATE TABLE "+cell+"compute_nodes (host VARCHAR(255), mapped INT, deleted INT)",
		"CREATE TABLE "+cell+"instances (host VARCHAR(255), deleted INT, uuid VARCHAR(36))",
		"CREATE TABLE "+cell+"services (version INT, deleted INT, `binary` VARCHAR(255))",
		"INSERT INTO "+cell+"compute_nodes VALUES ('compute-0', 1, 0)",
		"INSERT INTO "+api+"host_mappings VALUES (1, 'compute-0')")
}

func (c *cloud) exec(statements ...string) error {
	for _, statement := range statements {
		if _, err := c.mariaDB.DB.ExecContext(context.Background(), statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// logins returns the number of connections to MariaDB since its start.
func (c *cloud) logins() int {
	c.t.Helper()
	logins, err := strconv.Atoi(c.mariaDB.Column(c.t, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'CONNECTIONS'")[0])
	if err != nil {
		c.t.Fatal(err)
	}
	return logins
}

// objects returns the Secrets of a Nova, and then the Nova.
func (c *cloud) objects(i int) []*unstructured.Unstructured {
	replaced := strings.NewReplacer("NAME", nameOf(i), "HOST", c.mariaDB.Host, "PORT", c.mariaDB.Port, "PASSWORD", c.mariaDB.Password)
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(replaced.Replace(tree), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			c.t.Fatal(err)
		}
		object.SetNamespace(namespaceOf(i))
		objects = append(objects, object)
	}
	return objects
}
