package engine

import (
	"regexp"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectKey names one object of one kind.
type objectKey struct {
	gvk schema.GroupVersionKind
	types.NamespacedName
}

func (k objectKey) String() string { return k.gvk.Kind + " " + k.Name }

// Inputs is what a pass has gathered so far: what the stages needed, what they
// observed outside, and their children as they are now.
type Inputs struct {
	namespace string
	objects   map[objectKey]client.Object
	lists     map[string][]client.Object
	data      map[objectKey]map[string][]byte
	results   map[string]string
	observed  map[string]Observed
	served    map[schema.GroupVersionKind]bool
	kinds     func(client.Object) schema.GroupVersionKind
	met       map[string]bool
	cluster   *string
	masks     map[string]*regexp.Regexp
	children  map[objectKey]client.Object
	holders   *[]string
	isOurs    func(client.Object) bool
}

func newInputs(namespace string, kinds func(client.Object) schema.GroupVersionKind) Inputs {
	return Inputs{
		namespace: namespace,
		objects:   map[objectKey]client.Object{},
		lists:     map[string][]client.Object{},
		data:      map[objectKey]map[string][]byte{},
		results:   map[string]string{},
		observed:  map[string]Observed{},
		served:    map[schema.GroupVersionKind]bool{},
		kinds:     kinds,
		met:       map[string]bool{},
		cluster:   new(string),
		masks:     map[string]*regexp.Regexp{},
		holders:   new([]string),
	}
}

// Secret returns the data of a Secret that was needed, nil if it is absent.
func (in Inputs) Secret(name string) map[string][]byte {
	return in.data[in.key(secretGVK, name)]
}

// ConfigMap returns the data of a ConfigMap that was needed, nil if it is absent.
func (in Inputs) ConfigMap(name string) map[string][]byte {
	return in.data[in.key(configMapGVK, name)]
}

// Result returns the termination message of a Once Job of this or an earlier
// stage, by the name that its builder gave it. It is empty until the Job is complete.
func (in Inputs) Result(job string) string { return in.results[job] }

// Observed returns what the Do of a stage learned, by the stage's condition.
func (in Inputs) Observed(condition string) Observed { return in.observed[condition] }

// Served says whether the API server serves a kind that was named by the Need Served.
func (in Inputs) Served(gvk schema.GroupVersionKind) bool { return in.served[gvk] }

// Met says whether a need that was given a name by As is met.
func (in Inputs) Met(name string) bool { return in.met[name] }

// Ours says whether an object is a child, and not somebody else's of its name.
func (in Inputs) Ours(obj client.Object) bool { return in.isOurs(obj) }

// Cluster returns the UID that tells this cluster from any other, if it was needed.
func (in Inputs) Cluster() string { return *in.cluster }

// Get returns an object that was needed or is a child, as it was last seen: in
// the namespace, or of a kind that has none. It must not be changed.
func Get[O client.Object](in Inputs, name string) (O, bool) {
	key := in.key(in.kinds(newOf[O]()), name)
	obj, ok := in.objects[key].(O)
	if !ok {
		key.Namespace = ""
		obj, ok = in.objects[key].(O)
	}
	return obj, ok
}

// Listed returns the objects that a Need Labelled found, sorted by name. They
// must not be changed.
func Listed[O client.Object](in Inputs) []O {
	var found []O
	for _, obj := range in.lists[in.kinds(newOf[O]()).String()] {
		if typed, ok := obj.(O); ok {
			found = append(found, typed)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].GetName() < found[j].GetName() })
	return found
}

func (in Inputs) key(gvk schema.GroupVersionKind, name string) objectKey {
	return objectKey{gvk: gvk, NamespacedName: types.NamespacedName{Namespace: in.namespace, Name: name}}
}
