package e2e

import (
	"context"
	"database/sql"
	"net"

	"github.com/go-sql-driver/mysql"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func init() {
	mysql.RegisterDialContext("cluster", func(ctx context.Context, address string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	})
}

// connectDatabase connects to the MariaDB of a namespace as its administrator.
func connectDatabase(ctx context.Context, namespace string) *sql.DB {
	GinkgoHelper()
	admin := secret(ctx, namespace, "mariadb-admin")
	settings := mysql.NewConfig()
	settings.Net, settings.Addr = "cluster", "mariadb."+namespace+".svc.cluster.local:3306"
	settings.User, settings.Passwd = admin["user"], admin["password"]
	settings.TLSConfig = "preferred" // TLS if the server has it, with any certificate
	connector, err := mysql.NewConnector(settings)
	Expect(err).NotTo(HaveOccurred())
	return sql.OpenDB(connector)
}

// query returns the first column of a query to the MariaDB of a namespace.
func query(ctx context.Context, namespace, statement string, args ...any) []string {
	GinkgoHelper()
	db := connectDatabase(ctx, namespace)
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
