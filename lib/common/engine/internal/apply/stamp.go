package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Mode is what becomes of a child.
type Mode int

// Applied is the Mode of a child without a wrapper; see the wrappers in package
// engine for the others. The numbers are part of hashes in the status of every
// object: a new Mode goes to the end.
const (
	Applied Mode = iota
	Absent
	Replaced
	Generated
	Once
	Kept
)

// Child is what a stage wants of one object.
type Child struct {
	// Object is a typed apply configuration or a typed object.
	Object any
	Mode   Mode
	// SecretKeys of a Generated Secret have random values.
	SecretKeys []string
	// Depends decides whether a Once Job runs again; nil: its whole content does.
	Depends []string
	Unowned bool
	Lingers bool
	// FormerOwner, which is gone, has left an Absent child behind.
	FormerOwner types.UID
	Explain     Explain
}

// Explain looks for what keeps an object from being complete, or from going
// away; "" is an answer as well. It is asked now and then.
type Explain func(ctx context.Context, live client.Reader, obj client.Object) (string, error)

// stampedChild is a child with everything that is stamped on it.
type stampedChild struct {
	Child
	key  observe.Key
	body map[string]any
	hash string
	run  string // the name that a Once Job's builder gave it
}

// stamp a child: names, owner, labels and the hash of its body.
func (c *Children) stamp(ctx context.Context, stage string, child Child) (stampedChild, error) {
	body, err := Body(child.Object)
	if err != nil {
		return stampedChild{}, err
	}
	if obj, ok := child.Object.(client.Object); ok {
		kind := c.View.KindOf(obj)
		body["apiVersion"], body["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	object := &unstructured.Unstructured{Object: body}
	key, err := c.KeyOf(ctx, object)
	if err != nil {
		return stampedChild{}, err
	}
	want := stampedChild{Child: child, key: key, body: body}
	if want.key.Name == "" {
		return want, fmt.Errorf("a %s of stage %s has no name", want.key.Kind.Kind, stage)
	}
	if want.Mode == Once {
		// Stamped labels must not count: a new label would run every Job again.
		want.run, want.hash = want.key.Name, Hash(body)
		if len(want.Depends) > 0 {
			want.hash = Hash(want.Depends)
		}
		want.key.Name = want.run + "-" + want.hash[:8]
		object.SetName(want.key.Name)
	}
	object.SetNamespace(want.key.Namespace)
	c.stampLabels(object, stage, want)
	c.stampOwner(object, want)
	if want.Mode == Generated {
		body["immutable"] = true
	}
	if want.Mode != Once {
		want.hash = Hash(body)
	}
	annotate(object, annotationHash, want.hash)
	return want, nil
}

// Body is what is sent of an apply configuration or of an object.
func Body(child any) (map[string]any, error) {
	_, isObject := child.(client.Object)
	if _, ok := child.(runtime.ApplyConfiguration); !ok && !isObject {
		return nil, fmt.Errorf("%T is neither an apply configuration nor an object", child)
	}
	data, err := json.Marshal(child)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", child, err)
	}
	body := map[string]any{}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", child, err)
	}
	if isObject {
		delete(body, "status")
		unstructured.RemoveNestedField(body, "metadata", "creationTimestamp")
	}
	return body, nil
}

// KeyOf names the object that a Need or a Child means, in the namespace of the
// owner unless the kind has none.
func (c *Children) KeyOf(ctx context.Context, object client.Object) (observe.Key, error) {
	key := observe.KeyOf(c.View.KindOf(object), object)
	if key.Namespace != "" {
		return key, nil
	}
	namespaced, err := c.View.Namespaced(ctx, key.Kind)
	if namespaced {
		key.Namespace = c.Owner.GetNamespace()
	}
	return key, err
}

// stampLabels labels a child, and the pods that it is a template of.
func (c *Children) stampLabels(object *unstructured.Unstructured, stage string, want stampedChild) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.labels())
	labels[observe.LabelOwnerUID] = string(c.Owner.GetUID())
	labels[labelStage] = stage
	if want.Lingers {
		labels[labelLingers] = "true"
	}
	if want.Mode == Once {
		labels[labelRunOf] = want.run
	}
	object.SetLabels(labels)
	if template, ok, _ := unstructured.NestedMap(object.Object, "spec", "template"); ok {
		stampTemplate(template, c.podLabels(want))
		object.Object["spec"].(map[string]any)["template"] = template //nolint:forcetypeassert // NestedMap has walked it
	}
}

// stampTemplate labels the pods of a workload.
func stampTemplate(template map[string]any, labels map[string]string) {
	metadata, _ := template["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	existing, _ := metadata["labels"].(map[string]any)
	if existing == nil {
		existing = map[string]any{}
	}
	for name, value := range labels {
		if _, set := existing[name]; !set {
			existing[name] = value
		}
	}
	metadata["labels"] = existing
	template["metadata"] = metadata
}

// stampOwner refers to the owner, or names it where a reference must not be.
func (c *Children) stampOwner(object *unstructured.Unstructured, want stampedChild) {
	if want.Unowned || !c.mayOwn(want.key) {
		annotate(object, observe.AnnotationOwner, c.ownerAnnotation())
		return
	}
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: c.OwnerKind.GroupVersion().String(), Kind: c.OwnerKind.Kind, Name: c.Owner.GetName(), UID: c.Owner.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}

// podLabels are those of a child's pods. The pods of a Job have other labels than
// the pods of the service: a Service must not send requests to them. A disruption
// budget that counted them would let no pod go. A rule that keeps the service's
// pods apart would leave a Job without a node.
func (c *Children) podLabels(want stampedChild) map[string]string {
	labels := c.labels()
	if want.Mode == Once {
		labels[labelName] += "-job"
		labels[labelComponent] += "-job"
		labels[labelInstance] = labelValue(want.run)
	}
	return labels
}
