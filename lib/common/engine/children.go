package engine

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Children is every object of the kinds in Owns that belongs to the object,
// whatever its name and whichever stage made it: for a stage that removes what
// an earlier spec has left. It is always met.
func Children() Need { return Need{children: true} }

// Free is met when nothing has the object's name but, maybe, a child of ours:
// for a stage that prepares something for a name that another one takes.
func Free(object client.Object) Need { return Need{object: object, free: true} }

// Complete is met when a child that an earlier stage has Begun is complete.
func Complete(object client.Object) Need { return Need{object: object, complete: true} }

// ChildrenOf returns the children of a kind that a Need Children found, sorted
// by name; those that are being deleted are among them. They must not be changed.
func ChildrenOf[O client.Object](in Inputs) []O {
	var found []O
	for _, obj := range in.children {
		if typed, ok := obj.(O); ok {
			found = append(found, typed)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].GetName() < found[j].GetName() })
	return found
}

// KnowsChildren says whether a Need Children was looked at, and all could be read.
func (in Inputs) KnowsChildren() bool { return in.children != nil }

func (p *pass) lookChildren(ctx context.Context) error {
	if err := p.watchOwned(ctx); err != nil {
		return err
	}
	keys := p.observer.childrenOf(p.cr.GetUID())
	if p.observer.informers == nil { // nothing is watched, so there is no index
		if err := p.indexOwned(ctx, keys); err != nil {
			return err
		}
	}
	children := map[objectKey]client.Object{}
	for key := range keys {
		current, err := p.observe(ctx, key)
		if err != nil {
			return err
		}
		if current != nil && p.isOurs(current) {
			children[key] = current
		}
	}
	p.in.children = children
	return nil
}

func (p *pass) indexOwned(ctx context.Context, keys map[objectKey]childLabels) error {
	for _, kind := range p.owns {
		if p.observer.serves(p.kind(kind)) != nil {
			continue
		}
		found, err := p.observer.cached(ctx, p.kind(kind), "", map[string]string{labelOwnerUID: string(p.cr.GetUID())})
		if err != nil {
			return err
		}
		for _, child := range found {
			keys[objectKey{gvk: p.kind(kind), NamespacedName: client.ObjectKeyFromObject(child)}] = childLabels{}
		}
	}
	return nil
}

func (p *pass) lookFree(ctx context.Context, object client.Object) error {
	key := p.keyOf(object)
	current, err := p.observe(ctx, key)
	if err != nil || current == nil || p.isOurs(current) {
		return err
	}
	if current.GetDeletionTimestamp() != nil {
		return Wait("%s %s and is being deleted", key, ownerOf(current))
	}
	return foreign(key, current)
}

func (p *pass) lookComplete(ctx context.Context, object client.Object) error {
	key := p.keyOf(object)
	current, ok := p.in.objects[key]
	if !ok {
		var err error
		if current, err = p.observe(ctx, key); err != nil {
			return err
		}
	}
	if current == nil {
		return absence{Wait("%s does not exist", key)}
	}
	return complete(current)
}

func foreign(key objectKey, current client.Object) error {
	return Conflict("%s exists and %s: remove it, or choose another name", key, ownerOf(current))
}

// Holders are objects that can keep a child from going away although it is
// deleted, as pods do with a claim.
type Holders struct {
	// Kind of them, as a list. They are looked for in the child's namespace.
	Kind client.ObjectList
	// Hold says whether a holder keeps the child.
	Hold func(holder, child client.Object) bool
}

// HeldBy is for a child that goes: while it does not, its holders are listed now
// and then, but never watched. See Inputs.Holders.
func HeldBy(holders Holders, child Child) Child {
	w := unwrap(child)
	w.holders = &holders
	return w
}

// Holders returns the names of the objects that keep children from going away; nil
// where nobody has looked for them.
func (in Inputs) Holders() []string { return *in.holders }

// Within these bounds the holders of a child are listed after as long again as
// it has been waiting to go. Most go at once, and nobody is asked.
const (
	heldMin = 5 * time.Second
	heldMax = time.Minute
	// namesShown of the holders, in a message.
	namesShown = 10
	holderPage = 500
)

// leaving reports a child that was deleted and is still there.
func (p *pass) leaving(ctx context.Context, d desired, current client.Object) error {
	result := progressing("%s is being deleted%s", d.key, heldBy(current))
	if d.holders == nil {
		return result
	}
	since := current.GetDeletionTimestamp()
	if since == nil {
		result.after = heldMin
		return result
	}
	waiting := time.Since(since.Time)
	if waiting < heldMin {
		result.after = min(heldMin-waiting, heldMin) // the API server's clock may be ahead
		return result
	}
	names, left := p.passes.holders(p.request, d.key, since.Time)
	if left <= 0 {
		var err error
		if names, err = p.listHolders(ctx, *d.holders, current); err != nil {
			return err
		}
		if names == nil {
			names = []string{} // somebody has looked
		}
		left = heldFor(since.Time)
		p.passes.setHolders(p.request, d.key, names, left)
	}
	if *p.in.holders == nil {
		*p.in.holders = slices.Clone(names) // which are remembered
	} else {
		*p.in.holders = append(*p.in.holders, names...)
	}
	result.after = left
	if len(names) > 0 {
		result.message = fmt.Sprintf("%s is being deleted, and waits for %s", d.key, enumerate(d.holders.noun(), names))
	}
	return result
}

// heldFor is how long a child is left alone that has been waiting to go.
func heldFor(since time.Time) time.Duration { return min(time.Since(since), heldMax) }

func (p *pass) listHolders(ctx context.Context, h Holders, child client.Object) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.readTimeout)
	defer cancel()
	var names []string
	page := h.Kind.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has the same type
	for {
		err := p.observer.live.List(ctx, page, client.InNamespace(child.GetNamespace()), client.Limit(holderPage), client.Continue(page.GetContinue()))
		if err != nil {
			return nil, fmt.Errorf("listing what holds %s: %w", child.GetName(), err)
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			if holder, ok := item.(client.Object); ok && h.Hold(holder, child) {
				names = append(names, holder.GetName())
			}
			return nil
		})
		if err != nil || page.GetContinue() == "" {
			slices.Sort(names)
			return names, err
		}
	}
}

func (h Holders) noun() string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", h.Kind), ".")
	return strings.ToLower(strings.TrimSuffix(kind, "List"))
}

// enumerate objects as people read them: how many, and which, but not too many.
func enumerate(noun string, names []string) string {
	shown, more := names, ""
	if len(names) > namesShown {
		shown, more = names[:namesShown], ", …"
	}
	if len(names) != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s: %s%s", len(names), noun, strings.Join(shown, ", "), more)
}

// Kept leaves the child as it is, if it exists: it is neither applied nor deleted.
func Kept(child Child) Child {
	w := unwrap(child)
	w.mode = kept
	return w
}

// annotationOwner says in clear text to whom a child belongs that cannot have,
// or must not have, an owner reference: namespace, name and UID.
const annotationOwner = "asterism.dev/owner"

func (p *pass) ownerAnnotation() string {
	owner := p.cr.GetName() + "/" + string(p.cr.GetUID())
	if p.cr.GetNamespace() != "" {
		owner = p.cr.GetNamespace() + "/" + owner
	}
	return owner
}

// marked says whether an object says of itself that it is a child.
func marked(obj metav1.Object) bool {
	return obj.GetLabels()[labelOwnerUID] != "" || obj.GetAnnotations()[annotationOwner] != ""
}

// ownerUID of a child: by its controller reference, or, where it has none, by
// the annotation, or else by the label. Names prove nothing.
func ownerUID(obj metav1.Object) types.UID {
	if controller := metav1.GetControllerOf(obj); controller != nil {
		return controller.UID
	}
	if owner, ok := obj.GetAnnotations()[annotationOwner]; ok {
		return types.UID(owner[strings.LastIndex(owner, "/")+1:])
	}
	return types.UID(obj.GetLabels()[labelOwnerUID])
}
