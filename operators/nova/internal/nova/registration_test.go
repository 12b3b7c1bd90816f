package nova

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
	mariadb "asterism.dev/lib/registration/database"
	"asterism.dev/lib/registration/registrationtest"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/metadata"
)

const wrong = "wr0ng'p@ss/word"

// registering returns the sample's Nova with databases that the operator registers, and
// connection Secrets for the message buses and Keystone.
func (c *cloud) registering() *novav1.Nova {
	cr := c.given()
	cr.Spec.Database = novav1.Database{
		Server:         registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "mariadb"}},
		AdminSecretRef: &commonv1.SecretReference{Name: "mariadb-admin"},
	}
	cr.Spec.NamePrefix = c.schema("cloud")
	cr.Spec.Cells[0].Database = nil
	c.Create(&corev1.Secret{ObjectMeta: named("mariadb-admin"), StringData: map[string]string{"user": mariaDB.User, "password": mariaDB.Password}})
	return cr
}

// mariaDBService creates a Service without pods. The tests resolve its name to the loopback
// address.
func (c *cloud) mariaDBService(address string) *corev1.Service {
	return c.serviceAt("mariadb", address)
}

func (c *cloud) serviceAt(name, address string) *corev1.Service {
	_, text, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	port, err := strconv.ParseInt(text, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	service := &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mysql", Port: int32(port)}}}}
	c.Create(service)
	return service
}

// registersBus sets a RabbitMQ at whose address no server listens.
func registersBus(c *cloud, cr *novav1.Nova) string {
	return registersBusAt(registrationtest.RefusedAddress(GinkgoTB()), c, cr)
}

// registersBusAt sets a RabbitMQ with this address of its management API.
func registersBusAt(address string, c *cloud, cr *novav1.Nova) string {
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	c.Create(
		&corev1.Service{ObjectMeta: named("rabbitmq"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "management", Port: int32(number)}}}},
		&corev1.Secret{ObjectMeta: named("rabbitmq-admin"), StringData: map[string]string{"username": "guest", "password": wrong}},
	)
	cr.Spec.MessageBus.Connection = registrationv1.Connection{
		Server: registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "rabbitmq"}}, AdminSecretRef: &commonv1.SecretReference{Name: "rabbitmq-admin"},
	}
	return "rabbitmq." + c.Namespace + ".svc.cluster.local:" + port
}

// registersUser sets a Keystone with this address.
func (c *cloud) registersUser(cr *novav1.Nova, address string) string {
	c.Create(&corev1.Secret{ObjectMeta: named("keystone-admin"), StringData: map[string]string{
		"authURL": "http://" + address + "/v3", "username": "admin", "password": wrong,
	}})
	cr.Spec.Identity = novav1.Identity{AdminSecretRef: &commonv1.SecretReference{Name: "keystone-admin"}, Region: "RegionOne"}
	return address
}

// rabbitMQ is a fake of a management API.
type rabbitMQ struct {
	mu      sync.Mutex
	objects map[string]string // JSON by path
}

func (r *rabbitMQ) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	user, permissions := strings.CutSuffix(request.URL.Path, "/permissions")
	switch object, exists := r.objects[request.URL.Path]; {
	case request.URL.Path == "/api/whoami":
		_, _ = io.WriteString(w, `{"tags":"administrator"}`)
	case request.Method == http.MethodPut:
		content, _ := io.ReadAll(request.Body)
		r.objects[request.URL.Path] = string(content)
	case request.Method == http.MethodDelete:
		delete(r.objects, request.URL.Path)
	case permissions:
		var found []string
		for name, object := range r.objects {
			if strings.HasPrefix(name, "/api/permissions/") && path.Base(name) == path.Base(user) {
				found = append(found, object)
			}
		}
		_, _ = io.WriteString(w, "["+strings.Join(found, ",")+"]")
	case exists:
		_, _ = io.WriteString(w, object)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// existing returns all objects.
func (r *rabbitMQ) existing() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.objects)
}

// lose deletes all objects.
func (r *rabbitMQ) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.objects)
}

// repeating returns a service that registers its accounts every second instead of within ten
// minutes.
func repeating[T engine.Object](service engine.Service[T]) engine.Service[T] {
	var none T
	service.Stages = slices.Clone(service.Stages)
	for i := range service.Stages {
		stage := &service.Stages[i]
		if stage.Condition == novav1.ConditionDatabaseReady || stage.Condition == novav1.ConditionMessageBusReady {
			Expect(stage.Every).NotTo(BeNil(), stage.Condition)
			// The engine waits up to a tenth longer.
			Expect(stage.Every(none)*11/10).To(And(BeNumerically(">", 0), BeNumerically("<=", 10*time.Minute)), stage.Condition)
			stage.Every = func(T) time.Duration { return time.Second }
		}
	}
	return service
}

func mariaDBAddress() string { return net.JoinHostPort(mariaDB.Host, mariaDB.Port) }

// databases returns the names of the databases with a prefix.
func databases(prefix string) []string {
	return mariaDB.Column(GinkgoTB(), "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE '"+prefix+"%' ORDER BY 1")
}

func registered(prefix string) []string {
	return mariaDB.Column(GinkgoTB(), "SELECT user FROM mysql.user WHERE user LIKE '"+prefix+"%' ORDER BY 1")
}

var _ = Describe("Nova that registers its databases", func() {
	It("names the server that refuses the connection, and continues when the server is back", func() {
		c := newCloud()
		cr := c.registering()
		address := registrationtest.RefusedAddress(GinkgoTB())
		c.mariaDBService(address)
		c.Create(cr)
		_, port, _ := net.SplitHostPort(address)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, "DatabaseUnreachable", "mariadb."+c.Namespace+".svc.cluster.local:"+port+": connection refused")
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, "DatabaseUnreachable")

		registrationtest.Forward(GinkgoTB(), address, mariaDBAddress())
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionCell0Mapped, metav1.ConditionTrue)
		prefix := c.schema("cloud")
		Expect(databases(prefix)).To(ContainElements(prefix+"_api", prefix+"_cell0"))
		Expect(registered(prefix)).To(ContainElements(HavePrefix(prefix+"_api_"), HavePrefix(prefix+"_cell0_")))
	})

	It("changes its services while the server of a mapped cell is down, but not their image", func() {
		c := newCloud()
		cr := c.given()
		address := registrationtest.RefusedAddress(GinkgoTB())
		stop := registrationtest.Forward(GinkgoTB(), address, mariaDBAddress())
		c.mariaDBService(address)
		c.Create(&corev1.Secret{ObjectMeta: named("mariadb-admin"), StringData: map[string]string{"user": mariaDB.User, "password": mariaDB.Password}})
		cr.Spec.NamePrefix = c.schema("cloud")
		cr.Spec.Cells[0].Database = &registrationv1.Connection{
			Server:         registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "mariadb"}},
			AdminSecretRef: &commonv1.SecretReference{Name: "mariadb-admin"},
		}
		c.Create(cr)
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell1", Namespace: c.Namespace}}
		enginetest.Await(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		syncCell(cr.Spec.NamePrefix + "_cell1")
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)

		stop()
		c.Change(cr, func() { cr.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseUnreachable", "connection refused")
		scheduler := schedulerNamed(cr)
		enginetest.Eventually(GinkgoTB(), "the scheduler gets the change", func() error {
			if !c.Read(scheduler) || !strings.Contains(scheduler.Spec.CustomServiceConfig, "debug") {
				c.Read(cr)
				return errors.New(enginetest.Conditions(cr))
			}
			return nil
		})
		before := scheduler.Spec.ContainerImage
		c.Change(cr, func() { cr.Spec.ContainerImage = nextImage })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, "given-cell1-conductor still has image")
		Expect(c.Read(scheduler)).To(BeTrue())
		Expect(scheduler.Spec.ContainerImage).To(Equal(before))
	})

	It("retains the databases of cells that a paused Nova would have dropped before", func() {
		c := newCloud()
		cr := c.given()
		c.mariaDBService(mariaDBAddress())
		c.Create(&corev1.Secret{ObjectMeta: named("mariadb-admin"), StringData: map[string]string{"user": mariaDB.User, "password": mariaDB.Password}})
		cr.Spec.NamePrefix, cr.Spec.DeletionPolicy = c.schema("cloud"), novav1.DeletionDelete
		cr.Spec.Cells[0].Database = &registrationv1.Connection{
			Server:         registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "mariadb"}},
			AdminSecretRef: &commonv1.SecretReference{Name: "mariadb-admin"},
		}
		c.Create(cr)
		cell := cellNamed(cr, cr.Spec.Cells[0])
		cell.Namespace = c.Namespace
		enginetest.Await(GinkgoTB(), c.Client, cell, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		c.Change(cr, func() { cr.Spec.Paused, cr.Spec.DeletionPolicy = true, novav1.DeletionRetain })
		enginetest.Await(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, metav1.ConditionUnknown)
		Expect(c.Read(cell)).To(BeTrue())
		Expect(cell.Spec.DeletionPolicy).To(Equal(novav1.DeletionDelete))
		c.Delete(cr, metav1.DeletePropagationForeground)
		enginetest.AwaitGone(GinkgoTB(), c.Client, cr)
		Expect(databases(cr.Spec.NamePrefix)).To(ContainElement(cr.Spec.NamePrefix + "_cell1"))
	})

	It("changes its services while a Secret of a mapped cell is missing, but not their image", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		const conductor = "given-cell1-conductor"
		missing := &corev1.Secret{ObjectMeta: named("cell1-database")}
		Expect(c.Read(missing)).To(BeTrue())
		c.fail(conductor, conductorv1.ConditionInputsReady, "Secret cell1-database does not exist")
		c.Delete(missing, metav1.DeletePropagationBackground)
		child := c.cell1(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionInputsReady, engine.ReasonWaiting, "Secret cell1-database")

		c.Change(cr, func() { cr.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		services := []client.Object{schedulerNamed(cr), metadata.Named(metadataName(cr)), apiNamed(cr)}
		enginetest.Eventually(GinkgoTB(), "the services get the change", func() error {
			for _, service := range services {
				if !c.Read(service) || !strings.Contains(specOf(service).CustomServiceConfig, "debug") {
					c.Read(cr)
					return fmt.Errorf("%s: %s", service.GetName(), enginetest.Conditions(cr))
				}
			}
			return nil
		})
		before := imageOf(services[0])
		c.Change(cr, func() { cr.Spec.ContainerImage = nextImage })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionSchedulerReady, engine.ReasonWaiting, conductor+" still has image")
		for _, service := range services {
			Expect(c.Read(service)).To(BeTrue())
			Expect(imageOf(service)).To(Equal(before))
		}

		c.Create(&corev1.Secret{ObjectMeta: named("cell1-database"), Data: missing.Data})
		c.repair(conductor)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(c.Read(services[0])).To(BeTrue())
		Expect(imageOf(services[0])).To(Equal(nextImage))
	})

	It("moves to another address only if its databases are there", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		for _, name := range []string{"second", "third"} {
			address := registrationtest.RefusedAddress(GinkgoTB())
			registrationtest.Forward(GinkgoTB(), address, mariaDBAddress())
			c.serviceAt(name, address)
		}
		c.Create(cr)
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionCell0Mapped, metav1.ConditionTrue)
		api := c.schema("cloud") + "_api"
		Expect(cr.Status.Database).To(And(HavePrefix("mariadb."+c.Namespace), HaveSuffix("/"+api)))

		c.Change(cr, func() { cr.Spec.Database.ServiceRef.Name = "second" })
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionCell0Mapped, metav1.ConditionTrue)
		Expect(cr.Status.Database).To(And(HavePrefix("second."+c.Namespace), HaveSuffix("/"+api)))
		Expect(c.ended("given-cell0-map")).To(Equal(2), "its mapping has the new address")

		mariaDB.Exec(GinkgoTB(), "DROP DATABASE "+api)
		c.Change(cr, func() { cr.Spec.Database.ServiceRef.Name = "third" })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, novav1.ReasonDatabaseNotCopied, "third."+c.Namespace, `database "`+api+`" does not exist`)
		mariaDB.Exec(GinkgoTB(), "CREATE DATABASE "+api)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, engine.ReasonConflict, api)
		Expect(cr.Status.Database).To(HavePrefix("second." + c.Namespace))
	})

	It("is not delayed by the server of another Nova that drops packets", func() {
		c := newCloud()
		c.mariaDBService(registrationtest.FullAddress(GinkgoTB()))
		healthy := c.given()
		silent := healthy.DeepCopy()
		silent.Name = "silent"
		silent.Spec.Database = novav1.Database{Server: registrationv1.Server{ServiceRef: &commonv1.ServiceReference{Name: "mariadb"}}, AdminSecretRef: &commonv1.SecretReference{Name: "mariadb-admin"}}
		c.Create(&corev1.Secret{ObjectMeta: named("mariadb-admin"), StringData: map[string]string{"user": "admin", "password": wrong}})
		c.Create(silent, healthy)
		enginetest.AwaitReady(GinkgoTB(), c.Client, healthy)
		enginetest.AwaitReason(GinkgoTB(), c.Client, silent, novav1.ConditionDatabaseReady, "DatabaseUnreachable", "mariadb."+c.Namespace+".svc.cluster.local:", "timed out")
	})

	DescribeTable("names a message bus or Keystone that is unreachable", func(prepare func(*cloud, *novav1.Nova) string, condition, reason, cause string) {
		c := newCloud()
		cr := c.given()
		address := prepare(c, cr)
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, condition, reason, address, cause)
		Expect(enginetest.Conditions(cr)).NotTo(ContainSubstring("wr0ng"))
	},
		Entry("a bus that refuses", registersBus, novav1.ConditionMessageBusReady, "MessageBusUnreachable", "connection refused"),
		Entry("a Keystone that refuses", func(c *cloud, cr *novav1.Nova) string {
			return c.registersUser(cr, registrationtest.RefusedAddress(GinkgoTB()))
		}, novav1.ConditionIdentityReady, "IdentityUnreachable", "connection refused"),
		Entry("a Keystone that drops packets", func(c *cloud, cr *novav1.Nova) string {
			return c.registersUser(cr, registrationtest.FullAddress(GinkgoTB()))
		}, novav1.ConditionIdentityReady, "IdentityUnreachable", "timed out"),
	)

	It("continues without Keystone, until the API", func() {
		c := newCloud()
		cr := c.given()
		c.registersUser(cr, registrationtest.RefusedAddress(GinkgoTB()))
		c.Create(cr)
		for _, done := range []string{novav1.ConditionConductorReady, novav1.ConditionCell0Mapped, novav1.ConditionCellsReady, novav1.ConditionSchedulerReady} {
			enginetest.Await(GinkgoTB(), c.Client, cr, done, metav1.ConditionTrue)
		}
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionAPIReady, engine.ReasonWaiting, novav1.ConditionIdentityReady)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionIdentityReady, "IdentityUnreachable")
	})

	It("keeps the account of services that run until Keystone has accepted another one", func() {
		c := newCloud()
		cr := c.given()
		c.registersUser(cr, registrationtest.RefusedAddress(GinkgoTB()))
		c.Create(cr)
		for _, done := range []string{novav1.ConditionConductorReady, novav1.ConditionCellsReady, novav1.ConditionSchedulerReady} {
			enginetest.Await(GinkgoTB(), c.Client, cr, done, metav1.ConditionTrue)
		}
		superconductor, scheduler, child := superconductorNamed(cr), schedulerNamed(cr), c.cell1(cr)
		Expect(c.Read(superconductor)).To(BeTrue())
		former := &corev1.Secret{ObjectMeta: named(superconductor.Spec.IdentitySecretRef.Name)}
		admin, another := &corev1.Secret{ObjectMeta: named("keystone-admin")}, registrationtest.RefusedAddress(GinkgoTB())
		c.Change(admin, func() { admin.StringData = map[string]string{"authURL": "http://" + another + "/v3"} })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionIdentityReady, "IdentityUnreachable", "key authURL of Secret keystone-admin: "+another)
		for _, obj := range []client.Object{superconductor, scheduler, child, former} {
			Expect(c.Read(obj)).To(BeTrue())
		}
		Expect([]string{superconductor.Spec.IdentitySecretRef.Name, scheduler.Spec.IdentitySecretRef.Name, child.Spec.IdentitySecretRef.Name}).To(HaveEach(former.Name))
	})

	It("names a missing Secret of an administrator, and a missing key, and continues when they exist", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		admin := &corev1.Secret{ObjectMeta: named("mariadb-admin")}
		c.Change(admin, func() { delete(admin.Data, "password") })
		missing := named("elsewhere")
		cr.Spec.Database.AdminSecretRef.Name = missing.Name
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionInputsReady, engine.ReasonWaiting, "Secret elsewhere")
		c.Create(&corev1.Secret{ObjectMeta: missing, Data: admin.Data})
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionInputsReady, engine.ReasonWaiting, "Secret elsewhere", "password")
		complete := &corev1.Secret{ObjectMeta: missing}
		c.Change(complete, func() { complete.StringData = map[string]string{"password": mariaDB.Password} })
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
	})

	It("reports a wrong password without printing it, and continues when it is corrected", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		admin := &corev1.Secret{ObjectMeta: named("mariadb-admin")}
		c.Change(admin, func() { admin.StringData = map[string]string{"password": wrong} })
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, "DatabaseDenied", "mariadb."+c.Namespace+".svc.cluster.local", mariaDB.User)
		Expect(enginetest.Conditions(cr)).NotTo(ContainSubstring("wr0ng"))
		c.Change(admin, func() { admin.StringData = map[string]string{"password": mariaDB.Password} })
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
	})

	It("does not change the database of another owner", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		foreign := c.schema("cloud") + "_cell0"
		mariaDB.Exec(GinkgoTB(), "CREATE DATABASE "+foreign, "CREATE TABLE "+foreign+".mine (a INT)")
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, engine.ReasonConflict, foreign)
		Expect(registered(foreign)).To(BeEmpty())
		Expect(mariaDB.Column(GinkgoTB(), "SHOW TABLES IN "+foreign)).To(Equal([]string{"mine"}))
		mariaDB.Exec(GinkgoTB(), "DROP DATABASE "+foreign)
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
	})

	DescribeTable("removes its registrations", func(deletion novav1.DeletionPolicy, kept ...string) {
		c := newCloud()
		cr := c.registering()
		cr.Spec.DeletionPolicy = deletion
		c.mariaDBService(mariaDBAddress())
		prefix := c.schema("cloud")
		c.Create(cr)
		c.syncCell1(cr, prefix)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		Expect(databases(prefix)).To(Equal([]string{prefix + "_api", prefix + "_cell0", prefix + "_cell1"}))
		Expect(registered(prefix)).To(HaveLen(3))
		child := c.cell1(cr)

		c.Delete(cr, metav1.DeletePropagationForeground)
		enginetest.AwaitGone(GinkgoTB(), c.Client, cr)
		c.nothingLeft(cr, child)
		Expect(registered(prefix)).To(BeEmpty())
		Expect(databases(prefix)).To(HaveLen(len(kept)))
		for i, suffix := range kept {
			Expect(databases(prefix)[i]).To(Equal(prefix + suffix))
		}
	},
		Entry("and drops the databases", novav1.DeletionDelete),
		Entry("and retains the databases", novav1.DeletionRetain, "_api", "_cell0", "_cell1"),
	)

	It("gets new passwords after its Secrets of credentials are deleted, and moves its services to them", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		prefix := c.schema("cloud")
		c.Create(cr)
		c.syncCell1(cr, prefix)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		names := registered(prefix)
		for owner, conductor := range map[client.Object]*conductorv1.NovaConductor{
			cr: superconductorNamed(cr), c.cell1(cr): {ObjectMeta: named(c.cell1(cr).Name + "-conductor")},
		} {
			former := c.accountOf(conductor)
			Expect(former.logIn()).To(Succeed())
			credentials := &corev1.Secret{ObjectMeta: named(owner.GetName() + "-credentials")}
			Expect(c.Read(credentials)).To(BeTrue())
			c.Delete(credentials, metav1.DeletePropagationBackground)
			enginetest.Eventually(GinkgoTB(), "the conductor moves to another Secret", func() error {
				if c.accountOf(conductor).secret == former.secret {
					return errors.New(former.secret)
				}
				return nil
			})
			enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
			current := c.accountOf(conductor)
			Expect(current.logIn()).To(Succeed())
			Expect(former.logIn()).To(MatchError(ContainSubstring("wrong user or password")))
			Expect(registered(prefix)).To(Equal(names))
		}
	})

	It("registers its accounts, databases and vhosts again after their servers have lost them", func() {
		bus := &rabbitMQ{objects: map[string]string{}}
		server := httptest.NewServer(bus)
		DeferCleanup(server.Close)
		c := runCloud(repeating(Service), repeating(cell.Service))
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		registersBusAt(server.Listener.Addr().String(), c, cr)
		cr.Spec.Cells[0].MessageBus = nil
		c.Create(cr)
		prefix := c.schema("cloud")
		c.syncCell1(cr, prefix)
		enginetest.AwaitReady(GinkgoTB(), c.Client, cr)
		names, objects := registered(prefix), bus.existing()
		Expect(names).To(HaveLen(3))
		Expect(slices.Collect(maps.Keys(objects))).To(ConsistOf(
			"/api/vhosts/"+prefix+"_api", HavePrefix("/api/users/"+prefix+"_api_"), HavePrefix("/api/permissions/"+prefix+"_api/"),
			"/api/vhosts/"+prefix+"_cell1", HavePrefix("/api/users/"+prefix+"_cell1_"), HavePrefix("/api/permissions/"+prefix+"_cell1/"),
		))

		bus.lose()
		for _, name := range names {
			mariaDB.Exec(GinkgoTB(), "DROP USER '"+name+"'@'%'")
		}
		enginetest.Eventually(GinkgoTB(), "the accounts are the same again", func() error {
			if now, found := registered(prefix), bus.existing(); !slices.Equal(now, names) || !maps.Equal(found, objects) {
				return fmt.Errorf("%v, %v", now, slices.Collect(maps.Keys(found)))
			}
			return nil
		})
	})

	It("gets a new secret of metadata after its Secret is deleted", func() {
		c := newCloud()
		cr := c.given()
		c.Create(cr)
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionCredentialsReady, metav1.ConditionTrue)
		secret := &corev1.Secret{ObjectMeta: named(metadataSecret(cr))}
		Expect(c.Read(secret)).To(BeTrue())
		former := secret.Data[config.KeySharedSecret]
		c.Delete(secret, metav1.DeletePropagationBackground)
		enginetest.Eventually(GinkgoTB(), "another Secret of metadata exists", func() error {
			if !c.Read(secret) || bytes.Equal(secret.Data[config.KeySharedSecret], former) {
				return errors.New("it does not")
			}
			return nil
		})
		Expect(secret.Data[config.KeySharedSecret]).NotTo(BeEmpty())
	})

	It("is deleted if the Service of its server was deleted, and lists the remaining objects", func() {
		c := newCloud()
		cr := c.registering()
		cr.Spec.DeletionPolicy = novav1.DeletionDelete
		service := c.mariaDBService(mariaDBAddress())
		c.Create(cr)
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		c.Delete(service, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionInputsReady, engine.ReasonWaiting, "Service mariadb")
		c.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitGone(GinkgoTB(), c.Client, cr)
		c.awaitLeftBehind(" and database " + c.schema("cloud") + "_api at Service mariadb: Service mariadb no longer exists")
	})

	It("waits during deletion for the password of the administrator's Secret", func() {
		c := newCloud()
		cr := c.registering()
		c.mariaDBService(mariaDBAddress())
		c.Create(cr)
		prefix := c.schema("cloud")
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionCell0Mapped, metav1.ConditionTrue)
		child := c.cell1(cr)
		enginetest.Await(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		admin := &corev1.Secret{ObjectMeta: named("mariadb-admin")}
		c.Change(admin, func() { delete(admin.Data, "password") })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionInputsReady, engine.ReasonWaiting, "Secret mariadb-admin", "password")
		c.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, engine.ReasonDeleting, "DatabaseRemoved: Secret mariadb-admin: ", "password")
		Expect(registered(prefix)).To(HaveLen(3))
		c.Change(admin, func() { admin.StringData = map[string]string{"password": mariaDB.Password} })
		enginetest.AwaitGone(GinkgoTB(), c.Client, child, cr)
		Expect(registered(prefix)).To(BeEmpty())
	})

	It("does not use another port of a bus as management port", func() {
		c := newCloud()
		cr := c.given()
		registersBus(c, cr)
		service := &corev1.Service{ObjectMeta: named("rabbitmq")}
		c.Change(service, func() { service.Spec.Ports[0].Name = "amqp" })
		c.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionMessageBusReady, engine.ReasonWaiting, "Service rabbitmq has no port named management: set messageBus.managementPort")
		c.Change(cr, func() { cr.Spec.MessageBus.ManagementPort = &service.Spec.Ports[0].Port })
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, novav1.ConditionMessageBusReady, "MessageBusUnreachable", "connection refused")
	})

	It("waits during deletion for an unreachable server, until the annotation abandons it", func() {
		c := newCloud()
		cr := c.registering()
		service := c.mariaDBService(mariaDBAddress())
		c.Create(cr)
		enginetest.Await(GinkgoTB(), c.Client, cr, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		_, text, _ := net.SplitHostPort(registrationtest.RefusedAddress(GinkgoTB()))
		port, _ := strconv.Atoi(text)
		child := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-cell1", Namespace: c.Namespace}}
		enginetest.Await(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, metav1.ConditionTrue)
		c.Change(service, func() { service.Spec.Ports[0].Port = int32(port) })
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, novav1.ConditionDatabaseReady, "DatabaseUnreachable", "connection refused")
		c.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), c.Client, cr, commonv1.ConditionReady, engine.ReasonDeleting, "CellsRemoved", "given-cell1")
		enginetest.AwaitReason(GinkgoTB(), c.Client, child, commonv1.ConditionReady, "DatabaseUnreachable", "DatabaseRemoved", "connection refused")
		for _, object := range []client.Object{child, cr} {
			c.Change(object, func() { object.SetAnnotations(map[string]string{commonv1.AnnotationAbandon: "true"}) })
		}
		enginetest.AwaitGone(GinkgoTB(), c.Client, child, cr)
		c.awaitLeftBehind("database " + c.schema("cloud") + "_cell1")
	})
})

// syncCell1 creates the tables of the API database and of cell1's database that the operator
// reads.
func (c *cloud) syncCell1(cr *novav1.Nova, prefix string) {
	enginetest.Eventually(GinkgoTB(), "the cell's database exists", func() error {
		if len(databases(prefix+"_api")) == 0 || len(databases(prefix+"_cell1")) == 0 {
			c.Read(cr)
			return errors.New(enginetest.Conditions(cr))
		}
		return nil
	})
	c.syncAPI(prefix + "_api")
	syncCell(prefix + "_cell1")
}

// account is an account of a database, and the name of its connection Secret.
type account struct{ secret, user, password string }

// accountOf returns the account with which a conductor connects to its own database.
func (c *cloud) accountOf(conductor *conductorv1.NovaConductor) account {
	Expect(c.Read(conductor)).To(BeTrue())
	secret := &corev1.Secret{ObjectMeta: named(conductor.Spec.DatabaseSecretRef.Name)}
	Expect(c.Read(secret)).To(BeTrue())
	return account{secret.Name, string(secret.Data["user"]), string(secret.Data["password"])}
}

func (a account) logIn() error {
	client, err := mariadb.Connect(context.Background(), mariadb.Server{Address: mariaDBAddress(), User: a.user, Password: config.Password(a.password)})
	if err == nil {
		client.Close()
	}
	return err
}

// awaitLeftBehind waits for an event that lists what could not be removed.
func (c *cloud) awaitLeftBehind(what string) {
	enginetest.Eventually(GinkgoTB(), "an event lists "+what, func() error {
		events := &eventsv1.EventList{}
		if err := c.Client.List(context.Background(), events, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
		var notes []string
		for _, event := range events.Items {
			if event.Reason == "LeftBehind" && strings.Contains(event.Note, what) {
				return nil
			}
			notes = append(notes, event.Reason+": "+event.Note)
		}
		return errors.New(strings.Join(notes, "\n"))
	})
}
