package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Confined is a controller that uses kinds in one namespace only, although the operator
// watches others as well. Objects of these kinds in other namespaces, which anybody may
// create, take no memory.
type Confined struct {
	Controller
	Namespace string
	Kinds     []client.Object
}

// Confine adds the namespaces of confined controllers to the options of a cache.
func Confine[C any](options *cache.Options, controllers ...C) {
	for _, controller := range controllers {
		confined, ok := any(controller).(Confined)
		if !ok {
			continue
		}
		if options.ByObject == nil {
			options.ByObject = map[client.Object]cache.ByObject{}
		}
		for _, kind := range confined.Kinds {
			options.ByObject[kind] = cache.ByObject{Namespaces: map[string]cache.Config{confined.Namespace: {}}}
		}
	}
}
