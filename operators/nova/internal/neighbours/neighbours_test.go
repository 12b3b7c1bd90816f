// Package neighbours attacks the operator of Nova with the rights of an editor of one
// namespace, and checks that the operator serves another namespace and stays small. Every
// operator needs such a test: what a tenant chooses, such as Secrets and the answers of
// servers, must not decide how much memory the operator takes.
package neighbours

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/registration/registrationtest"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/cell"
	"asterism.dev/operators/nova/internal/nova"
)

const (
	// most is the memory that the process may take on the heap, with the test's own clients.
	// A container has 512 MiB.
	most     = 256 << 20
	patience = 4 * time.Minute // bounds a failure: the machine may be slow
	each     = 2               // objects of each attack
)

var kinds = []func(*runtime.Scheme) error{
	novav1.AddToScheme, apiv1.AddToScheme, computev1.AddToScheme, conductorv1.AddToScheme, metadatav1.AddToScheme, novncproxyv1.AddToScheme, schedulerv1.AddToScheme,
}

// attack is a change of a Nova that works, and what a condition reports then.
type attack struct {
	change map[string]any // of the spec
	report string
}

func TestNeighbours(t *testing.T) {
	siblings := []string{"../../config/crd"}
	for _, kind := range []string{"api", "compute", "conductor", "metadata", "novncproxy", "scheduler"} {
		siblings = append(siblings, "../../../nova-"+kind+"/config/crd")
	}
	enginetest.InstallCRDs(t, siblings...)
	tenant, victim := enginetest.Namespace(t), enginetest.NewWorld(t, enginetest.Kubelet{}, kinds...)
	peak := registrationtest.WatchHeap()
	both := func(_ *rest.Config, options *ctrl.Options) {
		options.Cache.DefaultNamespaces[tenant] = cache.Config{}
	}
	t.Cleanup(func() { release(t, tenant) }) // when the operator has ended, which would add the finalizers again
	enginetest.RunWith(t, victim.Namespace, enginetest.Scheme(t, kinds...), []enginetest.Option{both}, nova.Service, cell.Service)

	editor := enginetest.Editor(t, tenant, []string{novav1.GroupVersion.Group}, kinds...)
	createSecrets(t, editor, tenant)
	attacks := attacks(t, editor, tenant)
	for name, attack := range attacks {
		for i := range each {
			createNova(t, editor, tenant, fmt.Sprint(name, i), attack.change)
		}
	}
	for name, attack := range attacks {
		for i := range each {
			waitFor(t, editor, tenant, fmt.Sprint(name, i), attack.report)
		}
	}
	calls := attackSilently(t, editor, tenant)
	createSecrets(t, victim.Client, victim.Namespace)
	createNova(t, victim.Client, victim.Namespace, "given", nil)
	waitFor(t, victim.Client, victim.Namespace, "given", "NovaConductor")
	if most := calls.mostAtOnce(); most > mostCalls {
		t.Errorf("%d calls of a silent server ran at once, at most %d are allowed", most, mostCalls)
	}
	if got := peak(); got > most {
		t.Errorf("%d MiB were on the heap at once, at most %d are allowed", got>>20, most>>20)
	}
}

// attacks starts the servers and creates the Secrets of the attacks.
func attacks(t *testing.T, editor client.Client, namespace string) map[string]attack {
	t.Helper()
	columns := registrationtest.StartRogueMariaDB(t, registrationtest.RogueMariaDB{Answer: registrationtest.Columns(1 << 60)})
	packets := registrationtest.StartRogueMariaDB(t, registrationtest.RogueMariaDB{Answer: []byte("\x01"), Length: 1<<24 - 2})
	keystone := httptest.NewServer(registrationtest.RogueKeystone(85000))
	t.Cleanup(keystone.Close)
	for name, data := range map[string]map[string][]byte{
		"bomb":     {"x": enginetest.SecretBomb()},
		"account":  {"user": []byte("u"), "password": []byte("s3cr3t")},
		"keystone": {"user": []byte("u"), "password": []byte("s3cr3t"), "authURL": []byte(keystone.URL)},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
		if err := editor.Create(context.Background(), secret); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]attack{
		"bomb":     {map[string]any{"database": database("bomb", "127.0.0.1:3306")}, "hidden: Secret bomb has more than 256 secret values"},
		"columns":  {map[string]any{"database": database("account", columns)}, "more than 250 columns"},
		"packets":  {map[string]any{"database": database("account", packets)}, "a packet of 16777214 bytes"},
		"keystone": {map[string]any{"identity": map[string]any{"adminSecretRef": map[string]any{"name": "keystone"}}}, "more than the 2000"},
	}
}

func database(secret, address string) map[string]any {
	host, text, _ := net.SplitHostPort(address)
	port, _ := strconv.ParseInt(text, 10, 32)
	return map[string]any{"adminSecretRef": map[string]any{"name": secret}, "host": host, "port": port}
}

const sample = "../../config/samples/nova-given.yaml"

func createSecrets(t *testing.T, with client.Client, namespace string) {
	t.Helper()
	for _, object := range enginetest.ReadSamples(t, sample) {
		if object.GetKind() != "Secret" {
			continue
		}
		object.SetNamespace(namespace)
		if err := with.Create(context.Background(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// createNova creates the Nova of the sample with other fields of the spec.
func createNova(t *testing.T, with client.Client, namespace, name string, change map[string]any) {
	t.Helper()
	object := enginetest.ReadSample(t, sample, "Nova")
	object.SetNamespace(namespace)
	object.SetName(name)
	for field, value := range change {
		if err := unstructured.SetNestedField(object.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	if err := with.Create(context.Background(), object); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition of the Nova reports a text.
func waitFor(t *testing.T, with client.Client, namespace, name, text string) {
	t.Helper()
	var found novav1.Nova
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := with.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
		return slices.ContainsFunc(found.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, text) }), err
	})
	if err != nil {
		t.Errorf("Nova %s does not report %q: %v: %+v", name, text, err, found.Status.Conditions)
	}
}

// release removes the finalizers, which need the servers.
func release(t *testing.T, namespace string) {
	t.Helper()
	admin := enginetest.Client(t, kinds...)
	var all novav1.NovaList
	if err := admin.List(context.Background(), &all, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	for _, found := range all.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
		if err := admin.Patch(context.Background(), &found, patch); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}
