package e2e

import (
	"os"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The clients that register accounts have their own tests for real servers.
var _ = Describe("Registration", func() {
	It("works at the demo's MariaDB, RabbitMQ and Keystone", func(ctx SpecContext) {
		address := func(name string) string {
			var service corev1.Service
			Expect(k8s.Get(ctx, client.ObjectKey{Namespace: demoNamespace, Name: name}, &service)).To(Succeed())
			return service.Spec.ClusterIP
		}
		mariadb, rabbitmq, keystone := secret(ctx, demoNamespace, "mariadb-admin"), secret(ctx, demoNamespace, "rabbitmq-default-user"), secret(ctx, demoNamespace, "keystone-admin")
		tests := exec.CommandContext(ctx, "go", "test", "-count=1", "-tags=e2e", "./database", "./messagebus", "./identity")
		tests.Dir = repository("lib", "registration")
		tests.Env = append(os.Environ(), "GOWORK="+repository("go.work"),
			"ASTERISM_MARIADB_ADDR="+address("mariadb")+":3306", "ASTERISM_MARIADB_USER="+mariadb["user"], "ASTERISM_MARIADB_PASSWORD="+mariadb["password"],
			"ASTERISM_RABBITMQ_URL=http://"+address("rabbitmq")+":15672", "ASTERISM_RABBITMQ_USER="+rabbitmq["username"], "ASTERISM_RABBITMQ_PASSWORD="+rabbitmq["password"],
			"ASTERISM_KEYSTONE_URL=http://"+address("keystone")+":5000/v3", "ASTERISM_KEYSTONE_USER="+keystone["user"], "ASTERISM_KEYSTONE_PASSWORD="+keystone["password"])
		out, err := tests.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
	}, SpecTimeout(12*time.Minute))
})
