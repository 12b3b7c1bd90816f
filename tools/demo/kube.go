package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"asterism.dev/cli/tree"
)

// group is the common suffix of Asterism's API groups.
const group = "asterism.dev"

var (
	controlPlanes = schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "controlplanes"}
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	drivers       = schema.GroupVersionResource{Group: "storage." + group, Version: "v1alpha1", Resource: "sharedvolumedrivers"}
	novaCells     = schema.GroupVersionResource{Group: "nova." + group, Version: "v1alpha1", Resource: "novacells"}
	deployments   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	statefulSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	jobs          = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods          = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// Kinds with special treatment.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindPod         = "Pod"
)

// kube is a client of the cluster, with the environment of kubectl for it.
type kube struct {
	server  string
	env     []string
	objects dynamic.Interface
	typed   kubernetes.Interface
	// stallCheck is the interval in which a wait looks for stalled objects.
	stallCheck time.Duration
}

// newKube connects to the cluster of KUBECONFIG in that environment.
func newKube(env []string) (*kube, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	for _, setting := range env {
		if path, found := strings.CutPrefix(setting, "KUBECONFIG="); found {
			rules.Precedence = strings.Split(path, ":")
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("KUBECONFIG is not usable: %w", err)
	}
	config.QPS, config.Burst = -1, 0
	// Warnings about deprecated APIs do not concern the demo's users.
	config.WarningHandler = rest.NoWarnings{}
	k := &kube{server: config.Host, env: env, stallCheck: 10 * time.Second}
	if k.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	k.typed, err = kubernetes.NewForConfig(config)
	return k, err
}

// object names an object that a step waits for.
type object struct {
	resource schema.GroupVersionResource
	kind     string
	name     string
	// namespace of a namespaced object; default the demo's
	namespace string
	// ready, if set, is checked after Kubernetes' own conventions.
	ready func(*unstructured.Unstructured) (ready bool, message string)
}

func deployment(name string) object {
	return object{resource: deployments, kind: kindDeployment, name: name}
}

func statefulSet(name string) object {
	return object{resource: statefulSets, kind: kindStatefulSet, name: name}
}

func (o object) String() string { return o.kind + "/" + o.name }

// notReadyError reports an object that did not become ready.
type notReadyError struct {
	object  object
	message string
	err     error
}

func (e *notReadyError) Error() string {
	return fmt.Sprintf("%v. %s: %s", e.err, e.object, e.message)
}

func (e *notReadyError) Unwrap() error { return e.err }

// await watches the object until it is ready, and passes each message to say.
func (k *kube) await(ctx context.Context, wanted object, say func(string)) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go k.giveUpStalled(ctx, wanted, giveUp)
	message := "the object does not exist"
	_, err := watchtools.UntilWithSync(ctx, k.watcher(wanted), &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		state := tree.StateOf(found)
		ready := state.Ready == metav1.ConditionTrue
		message = state.Message
		if ready && wanted.ready != nil {
			ready, message = wanted.ready(found)
		}
		if !ready {
			say(message)
		}
		return ready, nil
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return &notReadyError{object: wanted, message: message, err: err}
	}
	return nil
}

// stallChecks is the number of consecutive checks that must find a stalled object: right
// after an apply, its conditions may be older than the applied spec.
const stallChecks = 3

var errStalled = errors.New("an object is stalled: change it")

// giveUpStalled ends the wait for an object that stays stalled, itself or an object below it.
func (k *kube) giveUpStalled(ctx context.Context, wanted object, giveUp func(error)) {
	ticker := time.NewTicker(k.stallCheck)
	defer ticker.Stop()
	for stalled := 0; stalled < stallChecks; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		objects, err := k.allObjects(ctx)
		if err != nil {
			continue // the watch of await reports an unreachable API server
		}
		all := tree.New(objects)
		if root := find(all, wanted.kind, wanted.name); root != nil && isStalled(pathOf(all, root)) {
			stalled++
		} else {
			stalled = 0
		}
	}
	giveUp(errStalled)
}

func (k *kube) watcher(wanted object) cache.ListerWatcher {
	client := k.in(wanted.resource, cmp.Or(wanted.namespace, namespace))
	only := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", wanted.name).String()
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			only(&options)
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			return client.Watch(ctx, options)
		},
	}, k.objects)
}

// in returns the client of a resource, in the namespace if the resource is namespaced.
func (k *kube) in(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if resource == definitions || resource == drivers {
		return k.objects.Resource(resource)
	}
	return k.objects.Resource(resource).Namespace(namespace)
}

// allObjects lists the objects of Asterism's kinds, the workloads of the demo's namespace, and
// the operators.
func (k *kube) allObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	resources, err := k.asterismResources()
	if err != nil {
		return nil, err
	}
	found, err := k.listAll(ctx, namespace, append(resources, deployments, statefulSets, jobs, replicaSets, pods)...)
	for _, operatorNamespace := range []string{systemNamespace, storageNamespace} {
		if err != nil {
			break
		}
		var operators []*unstructured.Unstructured
		operators, err = k.listAll(ctx, operatorNamespace, deployments, replicaSets, pods)
		found = append(found, operators...)
	}
	return found, err
}

// asterismResources lists the namespaced resources of Asterism that the API server serves.
func (k *kube) asterismResources() (resources []schema.GroupVersionResource, err error) {
	_, served, err := k.typed.Discovery().ServerGroupsAndResources()
	if err != nil && len(served) == 0 {
		return nil, err
	}
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !strings.HasSuffix(version.Group, group) {
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Namespaced && slices.Contains(resource.Verbs, "list") {
				resources = append(resources, version.WithResource(resource.Name))
			}
		}
	}
	return resources, nil
}

func (k *kube) listAll(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, resource := range resources {
		list, err := k.in(resource, namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}
