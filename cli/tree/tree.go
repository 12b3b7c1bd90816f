// Package tree finds the children of objects, the state of each object, and the cause of a
// state that is not ready.
package tree

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/cli/internal/apigroup"
)

// Forest is a set of objects with their children by owner reference.
type Forest struct {
	all      []*unstructured.Unstructured
	owned    map[types.UID]bool
	children map[types.UID][]*unstructured.Unstructured
}

// New sorts the objects by age, the order in which a parent creates its children.
func New(objects []*unstructured.Unstructured) *Forest {
	f := &Forest{all: slices.Clone(objects), owned: map[types.UID]bool{}, children: map[types.UID][]*unstructured.Unstructured{}}
	slices.SortStableFunc(f.all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	known := map[types.UID]bool{}
	for _, o := range f.all {
		known[o.GetUID()] = true
	}
	for _, o := range f.all {
		for _, owner := range o.GetOwnerReferences() {
			f.children[owner.UID] = append(f.children[owner.UID], o)
			f.owned[o.GetUID()] = f.owned[o.GetUID()] || known[owner.UID]
		}
	}
	return f
}

// Roots returns the objects of Asterism's kinds that no other object of the forest owns:
// ControlPlanes, and objects that a person has created without a ControlPlane.
func (f *Forest) Roots() []*unstructured.Unstructured {
	var roots []*unstructured.Unstructured
	for _, o := range f.all {
		if IsOwn(o) && !f.owned[o.GetUID()] {
			roots = append(roots, o)
		}
	}
	return roots
}

// Below returns an object and all objects below it, each once, a parent before its children.
func (f *Forest) Below(o *unstructured.Unstructured) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{o}
	for i := 0; i < len(found); i++ {
		for _, child := range f.children[found[i].GetUID()] {
			if !slices.Contains(found, child) {
				found = append(found, child)
			}
		}
	}
	return found
}

// Find returns the objects of Asterism's kinds with that name; of one kind, unless kind is
// empty.
func (f *Forest) Find(kind, name string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, o := range f.all {
		if o.GetName() == name && (kind == "" && IsOwn(o) || o.GetKind() == kind) {
			found = append(found, o)
		}
	}
	return found
}

// Select returns the objects that a person means with a name, of a kind unless kind is empty:
// the roots of this name, because a Nova has the name of its ControlPlane, or else all.
func (f *Forest) Select(kind, name string) []*unstructured.Unstructured {
	found := f.Find(kind, name)
	if kind != "" {
		return found
	}
	roots := slices.DeleteFunc(slices.Clone(found), func(o *unstructured.Unstructured) bool { return f.owned[o.GetUID()] })
	if len(roots) > 0 {
		return roots
	}
	return found
}

// Children returns the objects that an object owns, by age.
func (f *Forest) Children(o *unstructured.Unstructured) []*unstructured.Unstructured {
	return f.children[o.GetUID()]
}

// Paused returns the topmost of an object and its owners whose spec.paused is true, nil for none: the
// operators pass the field on to the objects below.
func (f *Forest) Paused(o *unstructured.Unstructured) *unstructured.Unstructured {
	var paused *unstructured.Unstructured
	for range len(f.all) {
		if IsPaused(o) {
			paused = o
		}
		above := slices.IndexFunc(f.all, func(a *unstructured.Unstructured) bool {
			return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == a.GetUID() })
		})
		if above < 0 {
			break
		}
		o = f.all[above]
	}
	return paused
}

// Named returns the child that a message names, or nil. The longest name counts, because the
// name of one child may be the beginning of another.
func (f *Forest) Named(o *unstructured.Unstructured, message string) *unstructured.Unstructured {
	return named(f.children[o.GetUID()], message)
}

func named(children []*unstructured.Unstructured, message string) *unstructured.Unstructured {
	var found *unstructured.Unstructured
	for _, child := range children {
		better := found == nil || len(child.GetName()) > len(found.GetName()) ||
			len(child.GetName()) == len(found.GetName()) && strings.Contains(message, child.GetKind()+" "+child.GetName())
		if better && strings.Contains(message, child.GetName()) {
			found = child
		}
	}
	return found
}

// IsOwn returns true for an object of Asterism's kinds.
func IsOwn(o *unstructured.Unstructured) bool { return apigroup.IsOwn(o.GroupVersionKind().Group) }
