package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"asterism.dev/cli/internal/apigroup"
)

// Scheme has the kinds of every operator, and those of Kubernetes.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range slices.Concat([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, addKinds) {
		if err := add(scheme); err != nil {
			// The error is one of the source code, and the tests find it.
			panic(err) //nolint:forbidigo // a scheme that is not complete would hide kinds
		}
	}
	return scheme
}

const apps = "apps"

// Kinds of Kubernetes that the operators create and that run or store something.
var (
	Pod         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	Claim       = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	Event       = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	Secret      = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ConfigMap   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	Deployment  = schema.GroupVersionKind{Group: apps, Version: "v1", Kind: "Deployment"}
	StatefulSet = schema.GroupVersionKind{Group: apps, Version: "v1", Kind: "StatefulSet"}
	DaemonSet   = schema.GroupVersionKind{Group: apps, Version: "v1", Kind: "DaemonSet"}
	ReplicaSet  = schema.GroupVersionKind{Group: apps, Version: "v1", Kind: "ReplicaSet"}
	Job         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// Workloads are the kinds below the kinds of Asterism in a tree.
var Workloads = []schema.GroupVersionKind{Deployment, StatefulSet, DaemonSet, Job, ReplicaSet, Pod, Claim}

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

// shortWorkloads are the short names of the kinds of Kubernetes.
var shortWorkloads = map[string]string{
	"deploy": "Deployment", "sts": "StatefulSet", "ds": "DaemonSet", "rs": "ReplicaSet", "po": "Pod", "pvc": "PersistentVolumeClaim",
}

// KindOf returns the kind that a word on the command line names: in any case, singular or
// plural, with or without its group, or its short name, such as novacell, NovaCell or ncell.
func KindOf(word string) (schema.GroupVersionKind, error) {
	name, _, _ := strings.Cut(strings.ToLower(word), ".")
	var names []string
	for _, kind := range append(all(), Workloads...) {
		singular := strings.ToLower(kind.Kind)
		if cmp.Or(shortNames[name], shortWorkloads[name]) == kind.Kind || name == singular || name == singular+"s" || name == strings.TrimSuffix(singular, "y")+"ies" {
			return kind, nil
		}
		names = append(names, singular)
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%q is not a kind that this command knows: use one of %s", word, strings.Join(names, ", "))
}
