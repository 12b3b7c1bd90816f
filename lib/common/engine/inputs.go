package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Inputs are what a pass has gathered so far: the needs of the stages, the results of their Do,
// and their children in the present version. What one stage adds, every later stage can read.
type Inputs struct {
	began     time.Time
	namespace string
	kind      func(client.Object) schema.GroupVersionKind
	isChild   func(client.Object) bool

	objects  map[observe.Key]client.Object // objects of needs, and children
	lists    map[listKey][]client.Object
	children map[observe.Key]client.Object // found by the Need Children
	data     map[observe.Key]map[string][]byte
	results  map[string]string // of Jobs
	observed map[string]Observed
	served   map[schema.GroupVersionKind]bool
	met      map[string]bool
	unmet    map[string]string
	masks    *config.Masks

	cluster       string
	hashKey       []byte // nil for a kind that is cluster-scoped or owns no Secrets
	knowsChildren bool
}

func newInputs(namespace string, kind func(client.Object) schema.GroupVersionKind, isChild func(client.Object) bool) Inputs {
	return Inputs{
		began:     time.Now(),
		namespace: namespace,
		kind:      kind,
		isChild:   isChild,
		objects:   map[observe.Key]client.Object{},
		lists:     map[listKey][]client.Object{},
		children:  map[observe.Key]client.Object{},
		data:      map[observe.Key]map[string][]byte{},
		results:   map[string]string{},
		observed:  map[string]Observed{},
		served:    map[schema.GroupVersionKind]bool{},
		met:       map[string]bool{},
		unmet:     map[string]string{},
		masks:     config.NewMasks(),
	}
}

// Now returns the time at which the pass began: a builder has no clock of its own. No pass starts
// because this time goes on, see Time and TrueFor.
func (in Inputs) Now() time.Time { return in.began }

// Secret returns the data of a Secret of a Need, or of a child; nil if it is absent.
func (in Inputs) Secret(name string) map[string][]byte {
	return in.data[in.key(observe.SecretKind, name)]
}

// ConfigMap returns the data of a ConfigMap of a Need, or of a child; nil if it is absent.
func (in Inputs) ConfigMap(name string) map[string][]byte {
	return in.data[in.key(observe.ConfigMapKind, name)]
}

// Result returns the termination message of a Once Job of this or an earlier stage, by the
// name that the builder gave to the Job. It is empty until the Job is complete.
func (in Inputs) Result(job string) string { return in.results[job] }

// Observed returns the facts that the Do of a stage returned, by the stage's condition.
func (in Inputs) Observed(condition string) Observed { return in.observed[condition] }

// Served tells whether the API server serves a kind of a Need Served.
func (in Inputs) Served(kind schema.GroupVersionKind) bool { return in.served[kind] }

// Met tells whether the need with this name, given by As, is met.
func (in Inputs) Met(name string) bool { return in.met[name] }

// Unmet tells why the need with this name is not met.
func (in Inputs) Unmet(name string) string { return in.unmet[name] }

// IsChild tells whether an object is a child, and not a foreign object.
func (in Inputs) IsChild(obj client.Object) bool { return in.isChild(obj) }

// Hash returns a hash of values that encode as JSON, as 16 hex digits, for a status or an
// annotation. For a namespaced kind that owns Secrets, it depends on a key that only readers of
// Secrets know: the values may have secrets, and nobody else can compare the hash with that of a
// guess.
func (in Inputs) Hash(values ...any) string { return apply.KeyedHash(in.hashKey, values) }

// Cluster returns the UID that identifies the cluster, "" without a Need Cluster.
func (in Inputs) Cluster() string { return in.cluster }

// KnowsChildren tells whether a Need Children has read all children in this pass.
func (in Inputs) KnowsChildren() bool { return in.knowsChildren }

// Get returns an object of a Need, or a child, in the version that the pass has read. The
// object is in the namespace of the reconciled object, or cluster-scoped. It must not be
// changed. Get returns no Secrets and ConfigMaps: see Inputs.Secret and Inputs.ConfigMap.
func Get[O client.Object](in Inputs, name string) (O, bool) {
	key := in.key(in.kind(newOf[O]()), name)
	obj, ok := in.objects[key].(O)
	if !ok {
		key.Namespace = ""
		obj, ok = in.objects[key].(O)
	}
	return obj, ok
}

// ChildrenOf returns the children of a kind, sorted by namespace and name: the children
// that a Need Children found, and the children that this pass has applied since. Children
// that are being deleted are included. The children must not be changed. If a stage has
// read a child by name, ChildrenOf returns the version that the stage has read.
func ChildrenOf[O client.Object](in Inputs) []O {
	all := maps.Clone(in.children)
	for key, obj := range in.objects {
		if in.isChild(obj) {
			all[key] = obj
		}
	}
	return ofType[O](all)
}

func ofType[O client.Object](all map[observe.Key]client.Object) []O {
	var found []O
	for _, obj := range all {
		if typed, ok := obj.(O); ok {
			found = append(found, typed)
		}
	}
	slices.SortFunc(found, byName)
	return found
}

func (in Inputs) key(kind schema.GroupVersionKind, name string) observe.Key {
	return observe.Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: in.namespace, Name: name}}
}

// Observed are facts that the Do of a stage has read outside the cluster. They are
// stored in the status: they must not have secrets.
type Observed map[string]string
