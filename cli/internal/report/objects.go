package report

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"asterism.dev/cli/cluster"
)

// lists are the kinds of which the report has one file for each namespace.
var lists = []schema.GroupVersionKind{
	cluster.Event, cluster.ConfigMap, cluster.Claim,
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	cluster.Deployment, cluster.StatefulSet, cluster.DaemonSet, cluster.ReplicaSet, cluster.Job,
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "route.openshift.io", Version: "v1", Kind: "Route"},
	{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"},
}

// lastApplied repeats the spec as text, in which secrets have no names that stand alone.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func inNamespace(namespace string) client.ListOption { return client.InNamespace(namespace) }

// objects adds the objects of a namespace: a file for each object of Asterism's kinds and for
// each pod, and a file for each other kind.
func (r *collection) objects(ctx context.Context, namespace string) {
	for _, kind := range append(cluster.Own(), cluster.Pod) {
		for _, o := range r.list(ctx, namespace, kind) {
			name := file(namespace, folder(kind.Group), r.resource(kind), o.GetName()+".yaml")
			if kind == cluster.Pod {
				name = file(namespace, "pods", o.GetName(), o.GetName()+".yaml")
			}
			r.archive.add(name, document(r.clean(o)))
		}
	}
	for _, kind := range lists {
		var all []any
		for _, o := range r.list(ctx, namespace, kind) {
			if kind != cluster.ConfigMap || isOurs(o) { // other ConfigMaps are not Asterism's to show
				all = append(all, r.clean(o))
			}
		}
		if len(all) > 0 {
			r.archive.add(file(namespace, folder(kind.Group), r.resource(kind)+".yaml"), document(all))
		}
	}
}

// clusterScoped adds the objects of Asterism's kinds without a namespace.
func (r *collection) clusterScoped(ctx context.Context) {
	for _, kind := range cluster.OwnClusterScoped() {
		for _, o := range r.list(ctx, "", kind) {
			r.archive.add(path.Join("cluster-scoped-resources", kind.Group, r.resource(kind), o.GetName()+".yaml"), document(r.clean(o)))
		}
	}
}

func (r *collection) list(ctx context.Context, namespace string, kind schema.GroupVersionKind) []*unstructured.Unstructured {
	objects, err := r.cluster.List(ctx, namespace, kind)
	if err != nil {
		r.miss(cluster.What(kind, namespace), err)
	}
	return objects
}

// resource returns the name of a kind in the API server's paths.
func (r *collection) resource(kind schema.GroupVersionKind) string {
	if mapping, err := r.cluster.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		return mapping.Resource.Resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

// clean returns the content of an object without secrets.
func (r *collection) clean(o *unstructured.Unstructured) any {
	annotations := o.GetAnnotations()
	delete(annotations, lastApplied)
	o.SetAnnotations(annotations)
	return r.masker.Object(o.Object)
}

func isOurs(o *unstructured.Unstructured) bool {
	return o.GetLabels()["app.kubernetes.io/managed-by"] == "asterism"
}

// withoutValues returns name, type, labels and keys of a Secret. Annotations are left out,
// because kubectl apply repeats the values there.
func withoutValues(secret corev1.Secret) any {
	return map[string]any{
		"name":      secret.Name,
		"type":      string(secret.Type),
		"created":   secret.CreationTimestamp,
		"immutable": secret.Immutable != nil && *secret.Immutable,
		"labels":    secret.Labels,
		"keys":      slices.Sorted(maps.Keys(secret.Data)),
	}
}

// file returns a path in the layout of "oc adm inspect", which tools for such archives read.
func file(namespace string, parts ...string) string {
	return path.Join(append([]string{"namespaces", namespace}, parts...)...)
}

func folder(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// document returns an object as YAML; of a list, one document for each element.
func document(content any) []byte {
	elements, isList := content.([]any)
	if !isList {
		elements = []any{content}
	}
	var text []string
	for _, element := range elements {
		one, err := yaml.Marshal(element)
		if err != nil {
			one = fmt.Appendf(nil, "# this object cannot be written as YAML: %v\n", err)
		}
		text = append(text, string(one))
	}
	return []byte(strings.Join(text, "---\n"))
}
