package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	shared "asterism.dev/test/cloud"
)

const (
	// demoNamespace is the namespace of the ControlPlane of `make demo`.
	demoNamespace = "openstack"
	// systemNamespace and storageNamespace are the namespaces of the demo's operators.
	systemNamespace  = "asterism-system"
	storageNamespace = "asterism-storage"
	// tester is the field manager and the user agent of the tests.
	tester = "e2e"
	// testNamespaceLabel is the label of every namespace that the tests create.
	testNamespaceLabel = "e2e.asterism.dev/namespace"
)

const openStackName, defaultRelease = "asterism.dev/demo/openstack", "trixie"

// release is the release of Debian of the demo, and openStack is its image, which replaces that
// of the default release in every manifest.
var (
	release   = cmp.Or(os.Getenv("RELEASE"), defaultRelease)
	openStack = openStackName + ":" + release
)

var demoOperators = []string{systemNamespace, storageNamespace}

var (
	k8s    client.WithWatch
	typed  kubernetes.Interface
	config *rest.Config
)

// connect connects to the cluster of KUBECONFIG.
func connect() {
	GinkgoHelper()
	if k8s != nil {
		return
	}
	logf.SetLogger(GinkgoLogr)
	var err error
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	Expect(err).NotTo(HaveOccurred(), "run this with `make e2e`, which boots a cluster and names it in KUBECONFIG")
	config.QPS, config.Burst = -1, 0
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = tester
	k8s, err = client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	typed, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
}

// stateFolder returns the folder of tools/cluster with the kubeconfig and the audit log.
func stateFolder() string { return filepath.Dir(os.Getenv("KUBECONFIG")) }

// The helpers that test/packages uses as well.
var (
	repository = shared.Repository
	run        = shared.Run
	kubectl    = shared.Kubectl
)

// apply applies manifests to a namespace, as a user would.
func apply(ctx context.Context, namespace, manifests string) {
	GinkgoHelper()
	Expect(tryApply(ctx, namespace, manifests)).To(Succeed())
}

func tryApply(ctx context.Context, namespace, manifests string) error {
	return shared.Apply(ctx, ofRelease(manifests), "--field-manager="+tester, "--namespace="+namespace)
}

// ofRelease replaces the image of the default release.
func ofRelease(text string) string {
	return strings.ReplaceAll(text, openStackName+":"+defaultRelease, openStack)
}

// execIn runs a command in the pod's default container.
func execIn(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	return run(ctx, "", "kubectl", append([]string{"exec", "--namespace=" + namespace, pod, "--"}, command...)...)
}

// makeNamespace creates a namespace with the restricted pod security standard.
func makeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	apply(ctx, name, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {%s: "true", pod-security.kubernetes.io/enforce: restricted}
`, name, testNamespaceLabel))
}

// removeLeftovers deletes the namespaces of earlier runs, and removes finalizers for which
// no operator may be left.
func removeLeftovers(ctx context.Context) {
	GinkgoHelper()
	var namespaces corev1.NamespaceList
	Expect(k8s.List(ctx, &namespaces, client.HasLabels{testNamespaceLabel})).To(Succeed())
	for i := range namespaces.Items {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, &namespaces.Items[i]))).To(Succeed())
	}
	Eventually(func(g Gomega) {
		g.Expect(k8s.List(ctx, &namespaces, client.HasLabels{testNamespaceLabel})).To(Succeed())
		for _, namespace := range namespaces.Items {
			releaseFinalizers(ctx, namespace.Name)
		}
		g.Expect(namespaces.Items).To(BeEmpty())
	}).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
}

func releaseFinalizers(ctx context.Context, namespace string) {
	for _, kind := range asterismKinds {
		list, err := listOf(ctx, kind, namespace)
		if err != nil || kind == sharedVolume {
			continue // the demo's operator finalizes SharedVolumes, whose volumes are cluster-scoped
		}
		for i := range list {
			if len(list[i].GetFinalizers()) == 0 {
				continue
			}
			_ = k8s.Patch(ctx, &list[i], withoutFinalizers)
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := k8s.List(ctx, &bindings, client.InNamespace(namespace)); err == nil {
		for i := range bindings.Items {
			_ = k8s.Patch(ctx, &bindings.Items[i], withoutFinalizers)
		}
	}
}

var withoutFinalizers = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))

const sharedVolume = "SharedVolume"

// object returns an empty object of one of Asterism's kinds.
func object(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(groups[kind] + "/v1alpha1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// read reads an object of one of Asterism's kinds, which must exist.
func read(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	o := object(kind, namespace, name)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o
}

func listOf(ctx context.Context, kind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	gvk := object(kind, "", "").GroupVersionKind()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	err := k8s.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

// secret returns the content of a Secret, which must exist.
func secret(ctx context.Context, namespace, name string) map[string]string {
	GinkgoHelper()
	var found corev1.Secret
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)).To(Succeed())
	values := map[string]string{}
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values
}

// connectionsOf returns the name of the newest Secret with the connections of a service.
func connectionsOf(ctx context.Context, namespace, service string) string {
	GinkgoHelper()
	var all corev1.SecretList
	Expect(k8s.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/instance": service})).To(Succeed())
	all.Items = slices.DeleteFunc(all.Items, func(s corev1.Secret) bool { return !strings.HasPrefix(s.Name, service+"-connections-") })
	Expect(all.Items).NotTo(BeEmpty())
	return slices.MaxFunc(all.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).Name
}

// setSecret creates or updates a Secret so that it has exactly these keys.
func setSecret(ctx context.Context, namespace, name string, values map[string]string) {
	GinkgoHelper()
	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: values}
	err := k8s.Create(ctx, wanted)
	if apierrors.IsAlreadyExists(err) {
		var found corev1.Secret
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(wanted), &found)).To(Succeed())
		found.Data = nil
		found.StringData = values
		err = k8s.Update(ctx, &found)
	}
	Expect(err).NotTo(HaveOccurred())
}

// dial connects to a Service by its name. This machine is the node, so it reaches ClusterIPs.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if part := strings.Split(host, "."); len(part) > 2 && part[2] == "svc" {
		var service corev1.Service
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: part[1], Name: part[0]}, &service); err != nil {
			return nil, err
		}
		address = net.JoinHostPort(service.Spec.ClusterIP, port)
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
}
