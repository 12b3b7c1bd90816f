package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	yamltext "sigs.k8s.io/yaml"

	"asterism.dev/cli/cluster"
)

// manager is the field manager of the objects that this package applies.
const manager = "kubectl-asterism"

var (
	secretKind     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaceKind  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	roleKind       = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	bindingKind    = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
)

// read returns the objects of a file.
func read(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: name the folder of a release with --from. \"make release\" writes such a folder", err)
	}
	objects, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// text returns objects as YAML.
func text(objects []*unstructured.Unstructured) (string, error) {
	var documents []string
	for _, o := range objects {
		content, err := yamltext.Marshal(o.Object)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(content))
	}
	return strings.Join(documents, "---\n"), nil
}

// name returns how messages name an object.
func name(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// names returns the names of objects, one line for each kind and namespace, as a comment.
func names(objects []*unstructured.Unstructured) string {
	var order []string
	groups := map[string][]string{}
	for _, o := range objects {
		group := o.GetKind()
		if o.GetNamespace() != "" {
			group += " in " + o.GetNamespace()
		}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], o.GetName())
	}
	var lines strings.Builder
	for _, group := range order {
		lines.WriteString("#   " + group + ": " + strings.Join(groups[group], " ") + "\n")
	}
	return lines.String()
}

// apply adds a step that applies objects through the API server. Without a text, the plan has
// the objects as YAML.
func (p *planner) apply(title, shown string, objects []*unstructured.Unstructured) error {
	if shown == "" {
		var err error
		if shown, err = text(objects); err != nil {
			return err
		}
	}
	p.add(title, shown, func(ctx context.Context, _ func(string)) error {
		for _, o := range objects {
			configuration := client.ApplyConfigurationFromUnstructured(o.DeepCopy())
			if err := p.cluster.Apply(ctx, configuration, client.FieldOwner(manager), client.ForceOwnership); err != nil {
				return fmt.Errorf("%s cannot be applied: %w", name(o), err)
			}
		}
		return nil
	})
	return nil
}

// remove adds a step that deletes objects and waits until they are gone.
func (p *planner) remove(title string, objects []*unstructured.Unstructured) {
	if len(objects) == 0 {
		return
	}
	p.add(title, names(objects), func(ctx context.Context, say func(string)) error {
		for _, o := range objects {
			if err := p.cluster.Delete(ctx, o, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("%s cannot be deleted: %w", name(o), err)
			}
		}
		return p.await(ctx, say, func(ctx context.Context) (bool, string, error) { return p.gone(ctx, objects) })
	})
}

func (p *planner) gone(ctx context.Context, objects []*unstructured.Unstructured) (bool, string, error) {
	for _, o := range objects {
		found, err := p.get(ctx, o.GroupVersionKind(), o.GetNamespace(), o.GetName())
		if err != nil {
			return false, "", err
		}
		if found != nil && found.GetUID() == o.GetUID() {
			state := name(o) + " is being deleted"
			if waits := found.GetFinalizers(); len(waits) > 0 {
				state += ", and waits for the finalizers " + strings.Join(waits, ", ")
			}
			return false, state, nil
		}
	}
	return true, "", nil
}

// get returns an object, nil if it does not exist.
func (p *planner) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	err := p.cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s %s cannot be read: %w", kind.Kind, name, err)
	}
	return o, nil
}

// list returns the objects of a kind in a namespace. A kind that is not served has none.
func (p *planner) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := p.cluster.List(ctx, namespace, kind)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", cluster.What(kind, namespace), err)
	}
	return objects, nil
}
