package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rendered is what one stage would do.
type Rendered struct {
	Condition string
	// Needs are the objects that the stage names; those that a Labelled would
	// list have no name.
	Needs []Needed
	// Children as they would be sent, in the order of the builder.
	Children []RenderedChild
	// Err says why the stage is not done: an outcome such as Wait, or any error.
	Err error
}

// Needed is an object that a stage waits for.
type Needed struct {
	schema.GroupVersionKind
	types.NamespacedName
	Keys     []string
	Required bool
	// Unwatched: it is read once, and by name.
	Unwatched bool
}

// RenderedChild is a child and what would become of it.
type RenderedChild struct {
	*unstructured.Unstructured
	// Treatment is "applied", "absent", "replaced", "generated" or "once".
	Treatment string
	// Generated are the keys that get random values.
	Generated []string
	Unowned   bool
	Lingers   bool
	// Holders is the list of what may keep the child from going away.
	Holders client.ObjectList
}

func (m mode) String() string {
	return [...]string{"applied", "absent", "replaced", "generated", "once", "kept"}[m]
}

// Render says what the stages of a service would do for cr, or its teardown if
// cr is being deleted, without doing anything. c answers all reads.
//
// No Do is called: what it would observe is taken from cr's status.completed.
// A stage is taken as done unless a need is missing or it returns an error; the
// children of a done stage are inputs of later ones as c has them, or else as
// they were built; what is generated is then the word "generated" and the key.
// Report is called on cr.
func Render[T Object](ctx context.Context, c client.Client, s Service[T], cr T) []Rendered {
	e := &engine{
		owner: s.Name, gvk: kindOf(c.Scheme(), cr), owns: s.Owns,
		observer: newObserver(standard, c.Scheme(), c.RESTMapper(), nil, c, c),
	}
	p := e.begin(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cr)}, cr)
	adopt(p, s, cr)
	stages := s.Stages
	if cr.GetDeletionTimestamp() != nil {
		stages = s.Teardown
	}
	var all []Rendered
	for _, step := range bind(stages, cr) {
		rendered := p.render(ctx, step)
		all = append(all, rendered)
		if rendered.Err != nil && !step.carryOn {
			break
		}
	}
	if p.summarize != nil {
		p.summarize()
	}
	return all
}

func (p *pass) render(ctx context.Context, s step) (out Rendered) {
	out.Condition = s.condition
	if s.needs != nil {
		needs := s.needs()
		out.Needs = p.needed(needs, true)
		if _, out.Err = p.gather(ctx, needs); out.Err != nil {
			return out
		}
	}
	if completed := completedStage(p.before, s.condition); completed != nil {
		p.in.observed[s.condition] = completed.Observed
	}
	children, err := p.buildChildren(s)
	if err != nil {
		out.Err = err
		return out
	}
	for _, d := range children {
		if err := p.renderInput(ctx, d); err != nil {
			out.Err = err
			return out
		}
		child := RenderedChild{
			Unstructured: &unstructured.Unstructured{Object: d.body},
			Treatment:    d.mode.String(), Unowned: d.unowned, Lingers: d.lingers,
		}
		if d.mode == generated {
			child.Generated = d.keys
		}
		if d.holders != nil {
			child.Holders = d.holders.Kind
		}
		out.Children = append(out.Children, child)
	}
	if s.report != nil {
		s.report(p.in)
	}
	p.done[s.condition], p.ready[s.condition] = true, true
	return out
}

// renderInput makes a child an input of later stages.
func (p *pass) renderInput(ctx context.Context, d desired) error {
	if d.mode == absent || d.mode == kept {
		return nil
	}
	current, err := p.observe(ctx, d.key)
	if err != nil {
		return err
	}
	switch {
	case d.mode == once:
		runs, err := p.observer.cached(ctx, d.key.gvk, d.key.Namespace, map[string]string{labelRunOf: d.run})
		for _, run := range runs {
			p.in.results[d.run] = run.GetAnnotations()[annotationResult]
		}
		return err
	case d.mode == generated && current == nil:
		data := map[string][]byte{}
		for _, key := range d.keys {
			data[key] = []byte("generated " + key)
		}
		p.in.data[d.key] = data
		return nil
	case d.mode == generated:
		_, err := p.lookData(ctx, d.key, current, d.keys)
		return err
	case isDataKind(d.key.gvk):
		p.keep(d)
	}
	if current == nil {
		if current, err = p.observer.newObject(d.key.gvk); err != nil {
			return err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.body, current); err != nil {
			return err
		}
	}
	p.in.objects[d.key] = current
	return nil
}

func (p *pass) needed(needs []Need, required bool) []Needed {
	var all []Needed
	for _, need := range needs {
		switch {
		case need.anyOf != nil:
			all = append(all, p.needed(need.anyOf, false)...)
		case need.allOf != nil:
			all = append(all, p.needed(need.allOf, required && need.name == "" && !need.optional)...)
		case need.cluster:
			all = append(all, Needed{GroupVersionKind: namespaceGVK, NamespacedName: types.NamespacedName{Name: metav1.NamespaceSystem}, Unwatched: true})
		case need.object != nil:
			key := p.keyOf(need.object)
			all = append(all, Needed{GroupVersionKind: key.gvk, NamespacedName: key.NamespacedName, Keys: need.keys, Required: required && need.name == "" && !need.optional && !need.free && !need.complete})
		}
	}
	return all
}
