package observe

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key names one object of one kind. A Key without a name means every object of the kind in
// the namespace; a Key also without a namespace means every object of the kind.
type Key struct {
	Kind schema.GroupVersionKind
	types.NamespacedName
}

func (k Key) String() string { return k.Kind.Kind + " " + k.Name }

// KeyOf returns the key of an object of the kind.
func KeyOf(kind schema.GroupVersionKind, obj client.Object) Key {
	return Key{Kind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}
}
