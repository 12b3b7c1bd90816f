package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels and annotations that the engine puts on children.
const (
	labelOwnerUID    = "asterism.dev/owner-uid"
	labelStage       = "asterism.dev/stage"
	labelRunOf       = "asterism.dev/run-of"
	labelLingers     = "asterism.dev/lingers"
	annotationHash   = "asterism.dev/applied-hash"
	annotationResult = "asterism.dev/result"

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Child is something that a stage wants: a typed apply configuration, a typed
// object of the family's own kinds, or a wrapper of one of them.
type Child any

type mode int

const (
	applied mode = iota
	absent
	replaced
	generated
	once
	kept
)

// wrapped is a Child with a wish on how to treat it. Wrappers nest.
type wrapped struct {
	child   Child
	mode    mode
	keys    []string
	unowned bool
	lingers bool
	begun   bool
	holders *Holders
}

// When applies the child if the condition holds, and deletes it, if it is ours,
// otherwise.
func When(condition bool, child Child) Child {
	if condition {
		return child
	}
	w := unwrap(child)
	w.mode = absent
	return w
}

// Absent deletes the child, if it is ours; the stage is not done until it was
// observed gone.
func Absent(child Child) Child {
	w := unwrap(child)
	w.mode = absent
	return w
}

// Replaced is for what cannot be changed: a changed child is deleted, seen
// gone, and created anew.
func Replaced(child Child) Child {
	w := unwrap(child)
	w.mode = replaced
	return w
}

// Generated is a Secret that is created once, with a random value for each key,
// and never changed by us again. It is immutable.
func Generated(secret *applycorev1.SecretApplyConfiguration, keys ...string) Child {
	return wrapped{child: secret, mode: generated, keys: keys}
}

// Once runs exactly one Job per content: the Job is named after the hash of
// what its builder said, and one with other content is deleted and seen gone
// first. Where only some of the content decides whether the work must be done
// again, that is passed as depends, and the rest may change freely. The Job's
// termination message is an input of this stage's Report and of later stages.
// It must have backoffLimit 0 and no TTL.
func Once(job *applybatchv1.JobApplyConfiguration, depends ...string) Child {
	return wrapped{child: job, mode: once, keys: depends}
}

// Unowned leaves out the owner reference, so that foreground deletion of the
// owner does not remove the child before the teardown is done with it. The
// teardown must remove it.
func Unowned(child Child) Child {
	w := unwrap(child)
	w.unowned = true
	return w
}

// Lingering keeps the child, after its builder stops listing it, until the
// whole object is ready: whoever used it has moved on by then.
func Lingering(child Child) Child {
	w := unwrap(child)
	w.lingers = true
	return w
}

// Begun is content when the child exists: a later stage, which needs it Complete,
// first makes what it waits for.
func Begun(child Child) Child {
	w := unwrap(child)
	w.begun = true
	return w
}

func unwrap(child Child) wrapped {
	if w, ok := child.(wrapped); ok {
		return w
	}
	return wrapped{child: child}
}

// desired is a child with everything that the engine stamps on it.
type desired struct {
	wrapped
	key  objectKey
	body map[string]any
	hash string
	// run is the name that a Once Job's builder gave it.
	run string
}

// desire stamps a child: names, owner, labels and the hash of its body.
func (p *pass) desire(stage string, child Child) (desired, error) {
	w := unwrap(child)
	body, err := p.body(w.child)
	if err != nil {
		return desired{}, err
	}
	object := &unstructured.Unstructured{Object: body}
	d := desired{wrapped: w, key: p.keyOf(object), body: body}
	if d.key.Name == "" {
		return d, fmt.Errorf("a %s of stage %s has no name", d.key.gvk.Kind, stage)
	}
	if w.mode == once {
		// What the engine stamps must not count: a new label would run every Job again.
		d.run, d.hash = d.key.Name, w.content(body)
		d.key.Name = d.run + "-" + d.hash[:8]
		object.SetName(d.key.Name)
	}
	object.SetNamespace(d.key.Namespace)
	p.stampLabels(object, stage, d)
	p.stampOwner(object, d)
	if w.mode == generated {
		body["immutable"] = true
	}
	if w.mode != once {
		d.hash = hash(body)
	}
	annotate(object, annotationHash, d.hash)
	return d, nil
}

// content is the hash of what decides whether a Once Job must run again.
func (w wrapped) content(body map[string]any) string {
	if len(w.keys) > 0 {
		return hash(w.keys)
	}
	return hash(body)
}

// stampLabels labels a child, and the pods that it is a template of.
func (p *pass) stampLabels(object *unstructured.Unstructured, stage string, d desired) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.labels())
	labels[labelOwnerUID] = string(p.cr.GetUID())
	labels[labelStage] = stage
	if d.lingers {
		labels[labelLingers] = "true"
	}
	if d.mode == once {
		labels[labelRunOf] = d.run
	}
	object.SetLabels(labels)
	if template, ok, _ := unstructured.NestedMap(object.Object, "spec", "template"); ok {
		stampTemplate(template, p.podLabels(d))
		object.Object["spec"].(map[string]any)["template"] = template //nolint:forcetypeassert // NestedMap has walked it
	}
}

// stampOwner refers to the owner, or names it where a reference must not be.
func (p *pass) stampOwner(object *unstructured.Unstructured, d desired) {
	if !d.unowned && p.mayOwn(d.key) {
		object.SetOwnerReferences([]metav1.OwnerReference{p.ownerReference()})
		return
	}
	annotate(object, annotationOwner, p.ownerAnnotation())
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}

// body converts what a builder returned to what is sent.
func (p *pass) body(child Child) (map[string]any, error) {
	switch child.(type) {
	case runtime.ApplyConfiguration, client.Object:
	default:
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
	if object, ok := child.(client.Object); ok {
		gvk := p.kind(object)
		body["apiVersion"], body["kind"] = gvk.GroupVersion().String(), gvk.Kind
		delete(body, "status")
		unstructured.RemoveNestedField(body, "metadata", "creationTimestamp")
	}
	return body, nil
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

// Selector returns the labels that find the pods of one instance of a service.
// They never change, because selectors cannot.
func Selector(service, instance string) map[string]string {
	return map[string]string{labelName: service, labelInstance: labelValue(instance)}
}

// labelValue is the name itself, or its beginning and a hash where it is too
// long for a label.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	hash := hash(name)
	return name[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}

// labels of every child and pod. There is no version among them: an operator's
// upgrade must not restart what it runs.
func (p *pass) labels() map[string]string {
	labels := Selector(p.owner, p.cr.GetName())
	labels[labelComponent] = strings.ToLower(p.gvk.Kind)
	labels[labelManagedBy] = "asterism"
	labels[labelPartOf] = labelValue(p.cr.GetName())
	if whole := p.cr.GetLabels()[labelPartOf]; whole != "" {
		labels[labelPartOf] = whole
	}
	return labels
}

// podLabels are those of a child's pods. What selects the pods of the service
// must not find those of its Jobs: a disruption budget does not know how many
// pods a Job should have and then lets nothing go, not even after its end, a
// Service would send requests to it, and where a rule keeps the service's pods
// apart, a Job would find no node.
func (p *pass) podLabels(d desired) map[string]string {
	labels := p.labels()
	if d.mode == once {
		labels[labelName] += "-job"
		labels[labelComponent] += "-job"
		labels[labelInstance] = labelValue(d.run)
	}
	return labels
}

// mayOwn says whether Kubernetes allows an owner reference: not across
// namespaces, and not from the cluster to a namespace.
func (p *pass) mayOwn(child objectKey) bool {
	return p.cr.GetNamespace() == "" || p.cr.GetNamespace() == child.Namespace
}

func (p *pass) ownerReference() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: p.gvk.GroupVersion().String(), Kind: p.gvk.Kind, Name: p.cr.GetName(), UID: p.cr.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// isOurs says whether an object is a child of the one that is reconciled. Nothing in
// another namespace is, whatever it says of itself: whoever may write there may forge
// all of it, and has nothing to say here.
func (p *pass) isOurs(obj client.Object) bool {
	elsewhere := p.cr.GetNamespace() != "" && obj.GetNamespace() != "" && obj.GetNamespace() != p.cr.GetNamespace()
	return !elsewhere && ours(obj, p.cr.GetUID()) && (p.proof == nil || p.proof(obj))
}

// OwnedBy are labels that every child of the object has, and nothing else.
func OwnedBy(owner client.Object) map[string]string {
	return map[string]string{labelOwnerUID: string(owner.GetUID())}
}

// ours says whether an object belongs to the object that is reconciled, by its
// owner, see ownerUID.
func ours(obj metav1.Object, owner types.UID) bool { return ownerUID(obj) == owner }

// ownerOf describes to whom a foreign object belongs.
func ownerOf(obj metav1.Object) string {
	if controller := metav1.GetControllerOf(obj); controller != nil {
		return fmt.Sprintf("belongs to %s %s", controller.Kind, controller.Name)
	}
	if instance := obj.GetLabels()[labelInstance]; obj.GetLabels()[labelOwnerUID] != "" {
		return "belongs to an earlier or other owner, instance " + instance
	}
	return "was not made by this operator"
}
