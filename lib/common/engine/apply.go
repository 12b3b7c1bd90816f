package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ensure brings one child to what its builder wants. nil: it is complete.
func (p *pass) ensure(ctx context.Context, stage string, d desired, settled bool) error {
	switch d.mode {
	case absent:
		return p.ensureAbsent(ctx, d, settled)
	case kept:
		return nil
	case once:
		return p.ensureOnce(ctx, stage, d)
	case generated:
		return p.ensureGenerated(ctx, d)
	}
	current, err := p.observe(ctx, d.key)
	if err != nil {
		return err
	}
	if current == nil {
		current, err = p.create(ctx, d)
	} else {
		current, err = p.update(ctx, d, current)
	}
	if err != nil {
		return err
	}
	p.in.objects[d.key] = current
	if isDataKind(d.key.gvk) {
		p.keep(d)
	}
	if d.begun {
		return nil
	}
	return complete(current)
}

// keep makes the content of a Secret or ConfigMap that we apply an input of
// later stages, without reading it back.
func (p *pass) keep(d desired) {
	data := map[string][]byte{}
	for key, value := range nestedMap(d.body, "data") {
		text, _ := value.(string)
		data[key] = []byte(text)
		if decoded, err := base64.StdEncoding.DecodeString(text); d.key.gvk == secretGVK && err == nil {
			data[key] = decoded
		}
	}
	if d.key.gvk == secretGVK {
		p.in.remember(data)
	}
	p.in.data[d.key] = data
}

// update sends the child if that would change anything.
func (p *pass) update(ctx context.Context, d desired, current client.Object) (client.Object, error) {
	if err := p.claimed(d.key, current); err != nil {
		return nil, err
	}
	if unchanged(current, p.owner, d.hash, d.body) {
		return current, nil
	}
	if d.mode == replaced {
		if current.GetAnnotations()[annotationHash] != d.hash {
			if err := p.delete(ctx, d.key, current); err != nil {
				return nil, err
			}
			return nil, progressing("%s is being replaced", d.key)
		}
	}
	return p.send(ctx, d, current.GetUID())
}

// claimed returns an error unless the object is ours and here to stay.
func (p *pass) claimed(key objectKey, current client.Object) error {
	if !p.isOurs(current) {
		return foreign(key, current)
	}
	if current.GetDeletionTimestamp() != nil {
		return progressing("%s is being deleted", key)
	}
	return nil
}

// create sends the child so that it is created or, if the name is taken, refused.
//
// An object never has resourceVersion 1, so an apply that states it answers 409
// where something exists, and creates where nothing does: a plain apply would
// merge into whatever it finds.
func (p *pass) create(ctx context.Context, d desired) (client.Object, error) {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
	body.SetResourceVersion("1")
	p.passes.distrust(p.request, d.key)
	made, err := p.apply(ctx, d.key, body, true)
	if errors.IsConflict(err) {
		existing, readErr := p.readLive(ctx, d.key)
		if readErr != nil || existing == nil {
			return nil, fmt.Errorf("creating %s: %w", d.key, err)
		}
		if d.mode == generated {
			return existing, nil
		}
		return p.update(ctx, d, existing)
	}
	if err != nil {
		return nil, p.refused(d.key, err)
	}
	return made, nil
}

// readLive what the watch has not shown yet, and remember it; nil: it does not exist.
func (p *pass) readLive(ctx context.Context, key objectKey) (existing client.Object, err error) {
	err = p.observer.ask(key, func() (written, error) {
		existing, err = p.observer.read(ctx, p.observer.live, key)
		if err != nil || existing == nil {
			return written{}, err
		}
		return answered(existing), nil
	})
	return existing, err
}

// send applies the child onto the object with the UID, and no other.
func (p *pass) send(ctx context.Context, d desired, uid types.UID) (client.Object, error) {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
	body.SetUID(uid)
	made, err := p.apply(ctx, d.key, body, false)
	if errors.IsInvalid(err) {
		// An element that somebody else added to a list can make our apply
		// invalid for ever. A merge patch replaces lists as a whole.
		if p.repair(ctx, d, uid) == nil {
			body = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
			body.SetUID(uid)
			made, err = p.apply(ctx, d.key, body, false)
		}
	}
	if err != nil {
		return nil, p.refused(d.key, err)
	}
	return made, nil
}

// apply returns the object as the server answered it, and remembers it.
func (p *pass) apply(ctx context.Context, key objectKey, body *unstructured.Unstructured, created bool) (made client.Object, err error) {
	err = p.observer.ask(key, func() (written, error) {
		if err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(p.owner), client.ForceOwnership); err != nil {
			return written{}, err
		}
		p.observer.made(p.cr.GetUID(), key, body.GetLabels())
		made, err = p.decode(key.gvk, body)
		return written{version: body.GetResourceVersion(), answer: made, created: created}, err
	})
	return made, err
}

func (p *pass) decode(gvk schema.GroupVersionKind, body *unstructured.Unstructured) (client.Object, error) {
	obj, err := p.observer.newObject(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, obj); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

func (p *pass) repair(ctx context.Context, d desired, uid types.UID) error {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
	body.SetUID(uid)
	patch, err := json.Marshal(body.Object)
	if err != nil {
		return err
	}
	return p.client.Patch(ctx, body, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(p.owner+"-repair"))
}

// refused turns the API server's answer into what it means for the stage.
func (p *pass) refused(key objectKey, err error) error {
	switch {
	case errors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Wait("namespace %s is being deleted", key.Namespace)
	case errors.IsInvalid(err), errors.IsBadRequest(err):
		return Stop(ReasonInvalid, "%s was refused: %s", key, err)
	case errors.IsConflict(err):
		return WaitFor(conflictRetry, "%s changed while it was written", key)
	}
	return fmt.Errorf("applying %s: %w", key, err)
}

// ensureGenerated creates the Secret once; afterwards it is only looked at.
func (p *pass) ensureGenerated(ctx context.Context, d desired) error {
	current, err := p.observe(ctx, d.key)
	if err != nil {
		return err
	}
	if current == nil {
		data := map[string]any{}
		for _, key := range d.keys {
			data[key] = base64.StdEncoding.EncodeToString([]byte(rand.Text()))
		}
		for key, value := range nestedMap(d.body, "data") {
			data[key] = value
		}
		d.body["data"] = data
		if current, err = p.create(ctx, d); err != nil {
			return err
		}
	}
	if err := p.claimed(d.key, current); err != nil {
		return err
	}
	// Used only as it was stored, never from memory: a crash loses nothing.
	_, err = p.lookData(ctx, d.key, current, d.keys)
	return err
}

// ensureAbsent deletes what is ours, and is content when it is gone. The watch may
// not have shown yet what an earlier process has made: it is proof only after a
// live read, or after we have deleted just what it had shown, or where settled
// says that the stage was done for its current inputs before.
func (p *pass) ensureAbsent(ctx context.Context, d desired, settled bool) error {
	key := d.key
	current, err := p.observe(ctx, key)
	if err != nil {
		if p.observer.serves(key.gvk) != nil {
			return nil //nolint:nilerr // a kind that is not served has no objects
		}
		return err
	}
	shown := current != nil
	if _, trusted := p.passes.trusts(p.request, key); !shown && !settled && !trusted {
		if current, err = p.observer.read(ctx, p.observer.live, key); err != nil {
			return err
		}
		if current == nil {
			p.passes.trust(p.request, key, "")
		}
	}
	if current == nil || !p.isOurs(current) {
		return nil
	}
	return p.takeAway(ctx, d, current, shown)
}

// takeAway a child, unless that was asked for a moment ago and the watch is behind.
func (p *pass) takeAway(ctx context.Context, d desired, current client.Object, shown bool) error {
	last, _ := p.passes.trusts(p.request, d.key)
	if asked := last.uid == current.GetUID() && time.Since(last.at) < answerFor; !asked || !shown {
		deleted, err := p.deletes(ctx, d.key, current)
		if err != nil {
			return err
		}
		if deleted && shown {
			p.passes.trust(p.request, d.key, current.GetUID())
		}
	}
	return p.leaving(ctx, d, current)
}

// delete asks for the deletion of exactly this object, dependents first.
func (p *pass) delete(ctx context.Context, key objectKey, current client.Object) error {
	_, err := p.deletes(ctx, key, current)
	return err
}

// deletes is delete, and says whether the server has found the object and agreed.
func (p *pass) deletes(ctx context.Context, key objectKey, current client.Object) (bool, error) {
	if current.GetDeletionTimestamp() != nil {
		return false, nil
	}
	uid := current.GetUID()
	err := p.client.Delete(ctx, current.DeepCopyObject().(client.Object), //nolint:forcetypeassert // a copy has the same type
		client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation(current)))
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", key, err)
	}
	return true, nil
}

// propagation is foreground for what has dependents, so that those go first.
// Everything else need not wait for the garbage collector to find none.
func propagation(obj client.Object) metav1.DeletionPropagation {
	switch obj.(type) {
	case *appsv1.StatefulSet, *appsv1.Deployment, *appsv1.DaemonSet, *batchv1.Job, Object:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func heldBy(obj client.Object) string {
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer != metav1.FinalizerDeleteDependents {
			return ", held by " + finalizer
		}
	}
	return ""
}

// prune deletes the children of a stage that its builder no longer lists.
func (p *pass) prune(ctx context.Context, stage string, listed map[objectKey]bool) error {
	for key, labels := range p.observer.childrenOf(p.cr.GetUID()) {
		if labels.stage != stage || listed[key] || labels.lingers {
			continue
		}
		if err := p.remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes, once everything is ready, what only lingered.
func (p *pass) sweep(ctx context.Context) error {
	for key, labels := range p.observer.childrenOf(p.cr.GetUID()) {
		if !labels.lingers || p.listed[key] {
			continue
		}
		if err := p.remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) remove(ctx context.Context, key objectKey) error {
	current, err := p.observe(ctx, key)
	if err != nil || current == nil || !p.isOurs(current) {
		return err
	}
	return p.delete(ctx, key, current)
}

func nestedMap(body map[string]any, fields ...string) map[string]any {
	found, _, _ := unstructured.NestedMap(body, fields...)
	return found
}
