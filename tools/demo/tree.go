package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

// objectTree is a set of objects with their children by owner reference.
type objectTree struct {
	all      []*unstructured.Unstructured
	children map[types.UID][]*unstructured.Unstructured
}

// newObjectTree sorts the objects by age, the order in which a parent created them.
func newObjectTree(objects []*unstructured.Unstructured) *objectTree {
	f := &objectTree{all: slices.Clone(objects), children: map[types.UID][]*unstructured.Unstructured{}}
	slices.SortStableFunc(f.all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	for _, o := range f.all {
		for _, owner := range o.GetOwnerReferences() {
			f.children[owner.UID] = append(f.children[owner.UID], o)
		}
	}
	return f
}

func (f *objectTree) find(kind, name string) *unstructured.Unstructured {
	for _, o := range f.all {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// write writes an object with its children below it. It leaves out ReplicaSets and pods,
// which the workload above counts.
func (f *objectTree) write(out io.Writer, root *unstructured.Unstructured, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tREADY\tAVAILABLE\tMESSAGE\tAGE")
	f.branch(table, root, "", "", now)
	return table.Flush()
}

func (f *objectTree) branch(out io.Writer, o *unstructured.Unstructured, stem, below string, now time.Time) {
	message := ""
	if state := readiness(o); !state.ready {
		message = cut(state.message, 60)
	}
	_, _ = fmt.Fprintf(out, "%s%s/%s\t%s\t%s\t%s\t%s\n", stem, o.GetKind(), o.GetName(),
		readyColumn(o), condition(o, "Available").orNothing(isAsterismKind(o)), message, age(o.GetCreationTimestamp(), now))
	children := slices.DeleteFunc(slices.Clone(f.children[o.GetUID()]), func(child *unstructured.Unstructured) bool {
		return child.GetKind() == kindPod || child.GetKind() == kindReplicaSet
	})
	for i, child := range children {
		if i == len(children)-1 {
			f.branch(out, child, below+"└─", below+"  ", now)
		} else {
			f.branch(out, child, below+"├─", below+"│ ", now)
		}
	}
}

func (c conditionState) orNothing(shown bool) string {
	if !shown {
		return ""
	}
	return c.status
}

func readyColumn(o *unstructured.Unstructured) string {
	number := func(path ...string) int64 { n, _, _ := unstructured.NestedInt64(o.Object, path...); return n }
	switch o.GetKind() {
	case kindDeployment, kindStatefulSet:
		return fmt.Sprintf("%d/%d", number("status", "readyReplicas"), number("spec", "replicas"))
	case kindJob:
		for _, end := range []string{"Complete", "Failed"} {
			if condition(o, end).status == "True" {
				return end
			}
		}
		return "Running"
	default:
		return cmp.Or(condition(o, "Ready").status, "-")
	}
}

func age(created metav1.Time, now time.Time) string {
	return duration.HumanDuration(now.Sub(created.Time))
}
