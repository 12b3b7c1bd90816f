package engine

import (
	"maps"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Inputs is what a pass has gathered so far: what the stages needed, what they
// observed outside, and their children as they are now.
type Inputs struct {
	namespace string
	kind      func(client.Object) schema.GroupVersionKind
	isOurs    func(client.Object) bool

	objects  map[observe.Key]client.Object // needed, or a child
	labelled map[observe.Key]client.Object // by a Need Labelled
	children map[observe.Key]client.Object // by a Need Children
	data     map[observe.Key]map[string][]byte
	results  map[string]string // of Jobs
	observed map[string]Observed
	served   map[schema.GroupVersionKind]bool
	met      map[string]bool
	facts    *facts
	masks    config.Masks
}

// facts are set while a pass goes on.
type facts struct {
	cluster       string
	knowsChildren bool
}

func newInputs(namespace string, kind func(client.Object) schema.GroupVersionKind, isOurs func(client.Object) bool) Inputs {
	return Inputs{
		namespace: namespace,
		kind:      kind,
		isOurs:    isOurs,
		objects:   map[observe.Key]client.Object{},
		labelled:  map[observe.Key]client.Object{},
		children:  map[observe.Key]client.Object{},
		data:      map[observe.Key]map[string][]byte{},
		results:   map[string]string{},
		observed:  map[string]Observed{},
		served:    map[schema.GroupVersionKind]bool{},
		met:       map[string]bool{},
		facts:     &facts{},
		masks:     config.Masks{},
	}
}

// Secret returns the data of a Secret that was needed, nil if it is absent.
func (in Inputs) Secret(name string) map[string][]byte {
	return in.data[in.key(observe.SecretKind, name)]
}

// ConfigMap returns the data of a ConfigMap that was needed, nil if it is absent.
func (in Inputs) ConfigMap(name string) map[string][]byte {
	return in.data[in.key(observe.ConfigMapKind, name)]
}

// Result returns the termination message of a Once Job of this or an earlier
// stage, by the name that its builder gave the Job. It is empty until the Job is
// complete.
func (in Inputs) Result(job string) string { return in.results[job] }

// Observed returns what the Do of a stage learned, by the stage's condition.
func (in Inputs) Observed(condition string) Observed { return in.observed[condition] }

// Served says whether the API server serves a kind that was named by the Need Served.
func (in Inputs) Served(kind schema.GroupVersionKind) bool { return in.served[kind] }

// Met says whether a need that was given a name by As is met.
func (in Inputs) Met(name string) bool { return in.met[name] }

// Ours says whether an object is a child, and not somebody else's of its name.
func (in Inputs) Ours(obj client.Object) bool { return in.isOurs(obj) }

// Cluster returns the UID that distinguishes this cluster from any other, if it
// was needed.
func (in Inputs) Cluster() string { return in.facts.cluster }

// KnowsChildren says whether a Need Children was looked at, and all could be read.
func (in Inputs) KnowsChildren() bool { return in.facts.knowsChildren }

// Get returns an object that was needed or is a child, as it was last seen: in
// the namespace, or of a kind that has none. It must not be changed. Of Secrets and
// ConfigMaps it finds none: see Inputs.Secret and Inputs.ConfigMap.
func Get[O client.Object](in Inputs, name string) (O, bool) {
	key := in.key(in.kind(newOf[O]()), name)
	obj, ok := in.objects[key].(O)
	if !ok {
		key.Namespace = ""
		obj, ok = in.objects[key].(O)
	}
	return obj, ok
}

// Listed returns the objects of a kind that the Needs Labelled found, sorted by
// name. They must not be changed.
func Listed[O client.Object](in Inputs) []O { return ofType[O](in.labelled) }

// ChildrenOf returns the children of a kind that a Need Children found, and those that
// this pass has made since, sorted by name; those that are being deleted are among them.
// They must not be changed. A child that a stage has looked at by name is the version
// that the stage judged.
func ChildrenOf[O client.Object](in Inputs) []O {
	judged := maps.Clone(in.children)
	for key, obj := range in.objects {
		if in.isOurs(obj) {
			judged[key] = obj
		}
	}
	return ofType[O](judged)
}

func ofType[O client.Object](all map[observe.Key]client.Object) []O {
	var found []O
	for _, obj := range all {
		if typed, ok := obj.(O); ok {
			found = append(found, typed)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return found[i].GetNamespace()+"/"+found[i].GetName() < found[j].GetNamespace()+"/"+found[j].GetName()
	})
	return found
}

func (in Inputs) key(kind schema.GroupVersionKind, name string) observe.Key {
	return observe.Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: in.namespace, Name: name}}
}

// Observed is what the Do of a stage learned outside the cluster; never a secret, it
// is stored in the status.
type Observed map[string]string
