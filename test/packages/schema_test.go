package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// synchronizing are the operators that OLM does not replace while a schema is synchronized.
var synchronizing = []string{"nova", "nova-conductor"}

// condition names the OperatorCondition of an operator.
func condition(operator string, of release) string {
	return "operatorconditions.operators.coreos.com/" + of.packaged(operator)
}

// upgradeable returns status and message of the condition that an operator reports to OLM.
func upgradeable(ctx context.Context, operator string, of release) string {
	GinkgoHelper()
	return kubectl(ctx, "get", condition(operator, of), "--namespace", systemNamespace,
		`--output=jsonpath={range .spec.conditions[?(@.type=="Upgradeable")]}{.status} {.message}{end}`)
}

// lockSchema locks the table with the version of a cell's schema until unlock is called, so
// that a synchronization waits for the lock, and nothing else does.
func lockSchema(ctx context.Context) (unlock func()) {
	GinkgoHelper()
	const script = `
import base64, os, pymysql, time
def decode(text): return base64.b64decode(text).decode()
connection = pymysql.connect(host="mariadb", user=decode(%q), password=decode(%q))
connection.cursor().execute("LOCK TABLES demo_cell1.alembic_version WRITE")
open("/tmp/locked", "w").close()
while not os.path.exists("/tmp/unlock"):
    time.sleep(0.2)
`
	var admin struct{ Data map[string]string }
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", "secret/mariadb-admin", "--namespace", cloudNamespace, "--output=json")), &admin)).To(Succeed())
	execute := []string{"exec", "--stdin", "--namespace", cloudNamespace, "deployment/openstackclient", "--"}
	kubectl(ctx, append(execute, "rm", "-f", "/tmp/locked", "/tmp/unlock")...)
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, fmt.Sprintf(script, admin.Data["user"], admin.Data["password"]), "kubectl", append(execute, "python3", "-")...)
		ended <- err
	}()
	Eventually(func() error {
		_, err := run(ctx, "", "kubectl", append(execute, "test", "-e", "/tmp/locked")...)
		return err
	}).WithContext(ctx).Should(Succeed())
	return func() {
		kubectl(ctx, append(execute, "touch", "/tmp/unlock")...)
		Expect(<-ended).NotTo(HaveOccurred())
	}
}

// restartSchemaJob deletes the Job that has synchronized the cell's schema. It waits until
// the pod of the new Job runs, and describes the Job as an operator does.
func restartSchemaJob(ctx context.Context) string {
	GinkgoHelper()
	const conductor = "demo-cell1-conductor"
	jobs := func() (found []object) {
		for _, job := range list(ctx, "jobs", cloudNamespace) {
			if strings.HasPrefix(job.Metadata.Name, conductor+"-db-") {
				found = append(found, job)
			}
		}
		return found
	}
	before := jobs()
	Expect(before).To(HaveLen(1))
	kubectl(ctx, "delete", "job", before[0].Metadata.Name, "--namespace", cloudNamespace)
	Eventually(func(g Gomega) {
		now := jobs()
		g.Expect(now).To(HaveLen(1))
		g.Expect(now[0].Metadata.UID).NotTo(Equal(before[0].Metadata.UID))
		g.Expect(now[0].Status).To(HaveKeyWithValue("ready", BeNumerically("==", 1)))
	}).WithContext(ctx).Should(Succeed())
	return cloudNamespace + "/" + jobs()[0].Metadata.Name + " of NovaConductor " + conductor
}

// podsOf matches pods, UIDs by name, that have the pods of an operator as before.
func podsOf(operator string, before map[string]string) types.GomegaMatcher {
	GinkgoHelper()
	all := maps.Clone(before)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return !strings.HasPrefix(name, "asterism-"+operator+"-operator-")
	})
	Expect(all).To(HaveLen(1))
	for name, uid := range all {
		return HaveKeyWithValue(name, uid)
	}
	return nil
}
