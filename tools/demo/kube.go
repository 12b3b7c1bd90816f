package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
)

// group is the common suffix of Asterism's API groups.
const group = "asterism.dev"

// Kinds that the demo waits for.
var (
	definitionKind   = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	controlPlaneKind = schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "ControlPlane"}
	novaCellKind     = schema.GroupVersionKind{Group: "nova." + group, Version: "v1alpha1", Kind: "NovaCell"}
	driverKind       = schema.GroupVersionKind{Group: "storage." + group, Version: "v1alpha1", Kind: "SharedVolumeDriver"}
)

// kube is a client of the cluster, with the environment of kubectl for it.
type kube struct {
	*cluster.Cluster
	server string
	env    []string
	pause  time.Duration // between two looks of a wait
}

// newKube connects to the cluster of KUBECONFIG in that environment.
func newKube(env []string) (*kube, error) {
	flags := genericclioptions.NewConfigFlags(false)
	for _, setting := range env {
		// The flags read the demo's own variable, which may be a list of files.
		if path, found := strings.CutPrefix(setting, "KUBECONFIG="); found && path != os.Getenv("KUBECONFIG") {
			flags.KubeConfig = &path
		}
	}
	connected, err := cluster.Connect(flags)
	if err != nil {
		return nil, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return &kube{Cluster: connected, server: config.Host, env: env, pause: time.Second}, nil
}

// checkRights refuses an account without rights that operators need for their deployment, before
// anything is built.
func (k *kube) checkRights(ctx context.Context) error {
	for group, resource := range map[string]string{"apiextensions.k8s.io": "customresourcedefinitions", "rbac.authorization.k8s.io": "clusterroles"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "create"},
		}}
		if err := k.Create(ctx, review); err != nil {
			return fmt.Errorf("the API server %s: %w", k.server, err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("the account of KUBECONFIG may not create %s in the cluster %s: set KUBECONFIG to the file of a cluster administrator", resource, k.server)
		}
	}
	return nil
}

// object names an object that a step waits for.
type object struct {
	kind schema.GroupVersionKind
	name string
	// namespace of a namespaced object; default the demo's
	namespace string
	// ready, if set, is checked after Kubernetes' own conventions.
	ready func(*unstructured.Unstructured) (ready bool, message string)
}

func deployment(name string) object { return object{kind: cluster.Deployment, name: name} }

func statefulSet(name string) object { return object{kind: cluster.StatefulSet, name: name} }

func (o object) String() string { return o.kind.Kind + "/" + o.name }

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

const (
	// stallEvery is the number of looks after which a wait looks for stalled objects.
	stallEvery = 10
	// stallChecks is the number of consecutive checks that must find a stalled object: right
	// after an apply, its conditions may be older than the applied spec.
	stallChecks = 3
)

var errStalled = errors.New("an object is stalled: change it")

// await looks at the object until it is ready, and passes each message to say. It gives up if
// the object, or one below it, stays stalled.
func (k *kube) await(ctx context.Context, wanted object, say func(string)) error {
	ticker := time.NewTicker(k.pause)
	defer ticker.Stop()
	message, stalled := "the object does not exist", 0
	for looks := 1; ; looks++ {
		ready, now := k.look(ctx, wanted)
		if ready {
			return nil
		}
		if now != "" && now != message {
			message = now
			say(message)
		}
		if looks%stallEvery == 0 {
			if stalled++; !k.isStalled(ctx, wanted) {
				stalled = 0
			}
		}
		if stalled == stallChecks {
			return &notReadyError{object: wanted, message: message, err: errStalled}
		}
		select {
		case <-ctx.Done():
			return &notReadyError{object: wanted, message: message, err: context.Cause(ctx)}
		case <-ticker.C:
		}
	}
}

// look returns the message of an object that is not ready, or "" if it does not exist. The API
// server may restart, so its errors end no wait.
func (k *kube) look(ctx context.Context, wanted object) (ready bool, message string) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(wanted.kind)
	key := client.ObjectKey{Namespace: cmp.Or(wanted.namespace, namespace), Name: wanted.name}
	switch err := k.Get(ctx, key, found); {
	case apierrors.IsNotFound(err) || ctx.Err() != nil:
		return false, ""
	case err != nil:
		return false, err.Error()
	}
	state := tree.StateOf(found)
	if state.Ready == metav1.ConditionTrue && wanted.ready != nil {
		return wanted.ready(found)
	}
	return state.Ready == metav1.ConditionTrue, state.Message
}

func (k *kube) isStalled(ctx context.Context, wanted object) bool {
	objects, err := k.allObjects(ctx)
	if err != nil {
		return false
	}
	all := tree.New(objects)
	root := find(all, wanted.kind.Kind, wanted.name)
	return root != nil && isStalled(pathOf(all, root))
}

// allObjects lists the objects of Asterism's kinds, the workloads of the demo's namespace, and
// the operators.
func (k *kube) allObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	found, unread, err := k.Objects(ctx, namespace, slices.Concat(cluster.Own(), cluster.Workloads)...)
	for _, operatorNamespace := range []string{systemNamespace, storageNamespace} {
		if err != nil || len(unread) > 0 {
			break
		}
		var operators []*unstructured.Unstructured
		operators, unread, err = k.Objects(ctx, operatorNamespace, cluster.Deployment, cluster.ReplicaSet, cluster.Pod)
		found = append(found, operators...)
	}
	if err == nil && len(unread) > 0 {
		err = unread[0]
	}
	return found, err
}
