package e2e

import (
	"context"
	"database/sql"
	"net"

	"github.com/go-sql-driver/mysql"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func init() {
	mysql.RegisterDialContext("cluster", func(ctx context.Context, address string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	})
}

// secondMariaDB is the Service of a second MariaDB in a namespace.
const secondMariaDB = "mariadb-second"

// deploySecondMariaDB deploys the MariaDB of a namespace again, and waits until it is ready.
func deploySecondMariaDB(ctx context.Context, namespace string) {
	GinkgoHelper()
	second := deployAgain(ctx, namespace, "mariadb", secondMariaDB)
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
		g.Expect(second.Status.ReadyReplicas).To(BeEquivalentTo(1))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), func() string { return explain(namespace) })
}

// deployAgain deploys a server of a namespace again under another name, without its data and with
// the same administrator. With TLS, its certificate is in Secret <name>-tls.
func deployAgain(ctx context.Context, namespace, server, name string) *appsv1.StatefulSet {
	GinkgoHelper()
	var set appsv1.StatefulSet
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: server}, &set)).To(Succeed())
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	labels := map[string]string{"app.kubernetes.io/name": name}
	again := &appsv1.StatefulSet{ObjectMeta: meta, Spec: *set.Spec.DeepCopy()}
	again.Spec.ServiceName, again.Spec.Selector.MatchLabels, again.Spec.Template.Labels = name, labels, labels
	for i, volume := range again.Spec.Template.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			again.Spec.Template.Spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		case volume.Name == "certificate":
			volume.Secret.SecretName = name + "-tls"
		}
	}
	Expect(k8s.Create(ctx, again)).To(Succeed())
	copyService(ctx, namespace, server, name, name)
	return again
}

// copyService makes a Service with the ports of another, for the pods of a server.
func copyService(ctx context.Context, namespace, of, name, server string) {
	GinkgoHelper()
	var service corev1.Service
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of}, &service)).To(Succeed())
	copied := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	copied.Spec.Selector = map[string]string{"app.kubernetes.io/name": server}
	for _, port := range service.Spec.Ports {
		copied.Spec.Ports = append(copied.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port})
	}
	Expect(k8s.Create(ctx, copied)).To(Succeed())
}

// copyDatabase copies a database to the second MariaDB with the commands of
// docs/guides/cells.md, and gives the copy the comment at the end.
func copyDatabase(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	const commands = `read -r MYSQL_PWD; export MYSQL_PWD
mariadb --user=root --host="$1" --execute="CREATE DATABASE $2 CHARACTER SET utf8mb3"
mariadb-dump --user=root --host=127.0.0.1 --single-transaction "$2" | mariadb --user=root --host="$1" "$2"`
	password := secret(ctx, namespace, "mariadb-admin")["password"]
	_, err := run(ctx, password+"\n", "kubectl", "exec", "-i", "--namespace="+namespace, "mariadb-0", "--",
		"bash", "-euo", "pipefail", "-c", commands, "bash", secondMariaDB, name)
	Expect(err).NotTo(HaveOccurred())
	comment := query(ctx, namespace, "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '"+name+"'")
	second := connectServer(ctx, namespace, secondMariaDB)
	defer func() { _ = second.Close() }()
	_, err = second.ExecContext(ctx, "ALTER DATABASE "+name+" COMMENT '"+comment[0]+"'")
	Expect(err).NotTo(HaveOccurred())
}

// connectDatabase connects to the MariaDB of a namespace as its administrator.
func connectDatabase(ctx context.Context, namespace string) *sql.DB {
	GinkgoHelper()
	return connectServer(ctx, namespace, "mariadb")
}

func connectServer(ctx context.Context, namespace, service string) *sql.DB {
	GinkgoHelper()
	admin := secret(ctx, namespace, "mariadb-admin")
	settings := mysql.NewConfig()
	settings.Net, settings.Addr = "cluster", service+"."+namespace+".svc.cluster.local:3306"
	settings.User, settings.Passwd = admin["user"], admin["password"]
	settings.TLSConfig = "preferred" // TLS if the server has it, with any certificate
	connector, err := mysql.NewConnector(settings)
	Expect(err).NotTo(HaveOccurred())
	return sql.OpenDB(connector)
}

// query returns the first column of a query to the MariaDB of a namespace.
func query(ctx context.Context, namespace, statement string, args ...any) []string {
	GinkgoHelper()
	return queryServer(ctx, namespace, "mariadb", statement, args...)
}

// queryServer returns the first column of a query to one of several MariaDBs of a namespace.
func queryServer(ctx context.Context, namespace, service, statement string, args ...any) []string {
	GinkgoHelper()
	db := connectServer(ctx, namespace, service)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(ctx, statement, args...)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = rows.Close() }()
	var values []string
	for rows.Next() {
		var value sql.NullString
		Expect(rows.Scan(&value)).To(Succeed())
		values = append(values, value.String)
	}
	Expect(rows.Err()).NotTo(HaveOccurred())
	return values
}

// execute executes statements in the MariaDB of a namespace.
func execute(ctx context.Context, namespace string, statements ...string) {
	GinkgoHelper()
	db := connectDatabase(ctx, namespace)
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, statement)
		Expect(err).NotTo(HaveOccurred(), "statement of the test: %.30s…", statement)
	}
}
