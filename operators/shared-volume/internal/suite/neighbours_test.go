package suite

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/driver"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// TestNeighbourFillsNoCache: the editor of a namespace that nobody watches creates big
// objects of the kinds that the operator watches in the whole cluster.
func TestNeighbourFillsNoCache(t *testing.T) {
	const each, size, allowed = 40, 250 << 10, 10 << 20
	s := newDriverScene(t)
	everywhere := func(_ *rest.Config, options *ctrl.Options) { options.Cache.DefaultNamespaces = nil }
	s.operator = enginetest.RunWith(t, s.namespace, enginetest.Scheme(t, storagev1.AddToScheme, securityv1.Install), []enginetest.Option{everywhere},
		volume.Service, volume.Grants, driver.Confined(images), driver.Singleton{})
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	cr := s.shared("before")
	s.ready(cr)
	before := liveHeap()
	namespace := enginetest.Namespace(t)
	editor := enginetest.Editor(t, namespace, []string{storagev1.GroupVersion.Group}, storagev1.AddToScheme)
	fat := strings.Repeat("x", size)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < each; i += 4 {
				for _, object := range bigObjects(namespace, i, fat) {
					if err := editor.Create(s.ctx, object); err != nil {
						t.Errorf("%T: %v", object, err)
					}
				}
			}
		})
	}
	all.Wait()
	after := s.shared("after", func(spec *storagev1.SharedVolume) { spec.Spec.AccessPointID = "fsap-00000002" }) // its events follow those of the others
	s.ready(after)
	if grown := int64(liveHeap()) - int64(before); grown > allowed {
		t.Errorf("%d MiB of annotations took %d MiB of memory", 3*each*size>>20, grown>>20)
	}
}

// bigObjects returns an object of each namespaced kind that the operator watches everywhere.
func bigObjects(namespace string, i int, fat string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("fat-", i), Annotations: map[string]string{"example.org/x": fat}}
	labels := map[string]string{"a": "b"}
	daemons := &appsv1.DaemonSet{ObjectMeta: *meta.DeepCopy()}
	daemons.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	daemons.Spec.Template.Labels = labels
	daemons.Spec.Template.Spec.NodeSelector = map[string]string{"none": "none"}
	daemons.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "none"}}
	shared := &storagev1.SharedVolume{ObjectMeta: *meta.DeepCopy()}
	shared.Spec.FileSystemID, shared.Spec.AccessPointID = "fs-0123456789abcdef0", "fsap-00000001"
	return []client.Object{&corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy()}, daemons, shared}
}

// liveHeap returns the bytes that live on the heap.
func liveHeap() uint64 {
	var stats runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
