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

// Mode is the treatment of a child.
type Mode int

// Applied is the Mode of a child without a wrapper; the wrappers in package engine
// describe the other modes. The numbers are part of hashes in the status of every object:
// add a new Mode at the end.
const (
	Applied Mode = iota
	Absent
	Replaced
	Generated
	Once
	Kept
)

// Child is one object that a stage wants, and its treatment.
type Child struct {
	// Object is a typed apply configuration or a typed object.
	Object any
	Mode   Mode
	// SecretKeys are the keys of a Generated Secret with random values.
	SecretKeys []string
	// Depends runs a Once Job again when it changes; nil: every change of the Job does.
	Depends []string
	// Uninterrupted is true for a Once Job that is not deleted while its pod runs.
	Uninterrupted bool
	Unowned       bool
	Lingers       bool
	// TearsDown is true for an Absent child that is deleted before its dependents.
	TearsDown bool
	// FormerOwner is the deleted owner of an Absent child that still exists.
	FormerOwner types.UID
	Explain     Explain
}

// Explain returns why an object is not complete, or is not deleted yet; "": unknown. It is
// called from time to time.
type Explain func(ctx context.Context, live client.Reader, obj client.Object) (string, error)

// stampedChild is a child with names, owner, labels and hash.
type stampedChild struct {
	Child
	key  observe.Key
	body map[string]any
	hash string
	run  string // the name that the builder gave to a Once Job
}

// stamp adds names, owner, labels and the hash of the body to a child.
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
		// The hash excludes stamped labels: a new label would run every Job again.
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

// Body returns the fields of an apply configuration or of an object that are sent.
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

// KeyOf returns the key of an object of a Need or a Child, by default in the namespace of
// the owner if the kind is namespaced.
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

// stampLabels labels a child, and its pod template.
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
		object.Object["spec"].(map[string]any)["template"] = template //nolint:forcetypeassert // NestedMap has read it
	}
}

// stampTemplate adds labels to a pod template, unless the template has them.
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

// stampOwner adds a reference to the owner, or an annotation that names the owner if a
// reference is not wanted or not allowed.
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

// podLabels returns the labels of a child's pods. The pods of a Job have other labels than
// the pods of the service, so that the Service sends no requests to them, that a
// PodDisruptionBudget does not count them, and that the anti-affinity of the service's
// pods does not keep a Job from being scheduled.
func (c *Children) podLabels(want stampedChild) map[string]string {
	labels := c.labels()
	if want.Mode == Once {
		labels[labelName] += "-job"
		labels[labelComponent] += "-job"
		labels[labelInstance] = labelValue(want.run)
	}
	return labels
}
