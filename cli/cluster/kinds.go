package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"asterism.dev/cli/internal/apigroup"
	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	novaapiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// clusterScoped are the kinds of Asterism that have no namespace.
var clusterScoped = []string{"SharedVolumeDriver", "SharedVolumePolicy"}

// Scheme has the kinds of every operator, and those of Kubernetes.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		metav1alpha1.AddToScheme,
		novav1.AddToScheme,
		novaapiv1.AddToScheme,
		computev1.AddToScheme,
		conductorv1.AddToScheme,
		metadatav1.AddToScheme,
		novncproxyv1.AddToScheme,
		schedulerv1.AddToScheme,
		storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			// The error is one of the source code, and the tests find it.
			panic(err) //nolint:forbidigo // a scheme that is not complete would hide kinds
		}
	}
	return scheme
}

// Kinds of Kubernetes that the operators create and that run or store something.
var (
	Pod         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	Claim       = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	Event       = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	Secret      = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ConfigMap   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	Deployment  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	StatefulSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	ReplicaSet  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	Job         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// Workloads are the kinds below the kinds of Asterism in a tree.
var Workloads = []schema.GroupVersionKind{Deployment, StatefulSet, Job, ReplicaSet, Pod, Claim}

// Own returns the kinds of Asterism with a namespace, sorted by name.
func Own() []schema.GroupVersionKind {
	return slices.DeleteFunc(all(), func(kind schema.GroupVersionKind) bool { return slices.Contains(clusterScoped, kind.Kind) })
}

// OwnClusterScoped returns the kinds of Asterism without a namespace, sorted by name.
func OwnClusterScoped() []schema.GroupVersionKind {
	return slices.DeleteFunc(all(), func(kind schema.GroupVersionKind) bool { return !slices.Contains(clusterScoped, kind.Kind) })
}

func all() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind, example := range Scheme.AllKnownTypes() {
		if _, isObject := reflect.New(example).Interface().(metav1.Object); isObject && apigroup.IsOwn(kind.Group) {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) })
	return kinds
}

// KindOf returns the kind that a word on the command line names: in any case, singular or
// plural, with or without its group, such as novacell, novacells or NovaCell.
func KindOf(word string) (schema.GroupVersionKind, error) {
	name, _, _ := strings.Cut(strings.ToLower(word), ".")
	var names []string
	for _, kind := range append(all(), Workloads...) {
		singular := strings.ToLower(kind.Kind)
		if name == singular || name == singular+"s" || name == strings.TrimSuffix(singular, "y")+"ies" {
			return kind, nil
		}
		names = append(names, singular)
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%q is not a kind that this command knows: use one of %s", word, strings.Join(names, ", "))
}
