package install

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/cli/cluster"
)

// manifests are objects that are applied together, and deleted together.
type manifests struct {
	source     []string // the arguments by which kubectl finds them
	namespaces []string // that have Deployments of the operators
}

// manifests returns those of the operators, and the arguments by which kubectl finds the
// RoleBindings of a namespace. A release has a file for each namespace of operators. A folder with
// a kustomization is one of "make push".
func (p *planner) manifests(ctx context.Context) (all []manifests, bindings []string, err error) {
	if _, err := os.Stat(filepath.Join(p.From, "kustomization.yaml")); err == nil {
		m := manifests{source: []string{"-k", p.From}}
		objects, err := p.objectsOf(ctx, m.source)
		for _, o := range objects {
			if o.GetKind() == cluster.Deployment.Kind && !slices.Contains(m.namespaces, o.GetNamespace()) {
				m.namespaces = append(m.namespaces, o.GetNamespace())
			}
		}
		return []manifests{m}, []string{"-k", "config/namespace"}, err
	}
	dist := func(file string) string { return filepath.Join(p.From, "dist", file) }
	if _, err := read(dist("install.yaml")); err != nil {
		return nil, nil, err
	}
	return []manifests{
		{source: []string{"-f", dist("install.yaml")}, namespaces: []string{systemNamespace}},
		{source: []string{"-f", dist("shared-volume.yaml")}, namespaces: []string{storageNamespace}},
	}, []string{"-f", dist("namespace.yaml")}, nil
}

// ofControlPlane tells whether manifests have the operators of the control plane.
func (m manifests) ofControlPlane() bool { return slices.Contains(m.namespaces, systemNamespace) }

// operators names the operators of manifests in the titles of steps.
func (m manifests) operators() string {
	if m.ofControlPlane() {
		return "the operators of the control plane"
	}
	return "the operator of shared volumes"
}

// applyManifests adds steps that apply manifests server-side, because the CRDs are too big for an
// annotation, and that wait for the operators.
func (p *planner) applyManifests(m manifests) {
	p.run("Apply "+m.operators(), append([]string{kubectl, "apply", "--server-side"}, m.source...)...)
	for _, namespace := range m.namespaces {
		p.awaitOperators(namespace)
	}
}

func (p *planner) installKubectl(ctx context.Context) error {
	all, bindings, err := p.manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if len(all) > 1 && !m.ofControlPlane() && !p.SharedVolume {
			continue
		}
		if err := p.refuseOtherWay(m.namespaces...); err != nil {
			return err
		}
		p.applyManifests(m)
		if !m.ofControlPlane() {
			continue
		}
		for _, namespace := range p.Namespaces {
			if err := p.applyNamespace(ctx, namespace); err != nil {
				return err
			}
			p.run("Hand namespace "+namespace+" over to the operators", append([]string{kubectl, "apply", "-n", namespace}, bindings...)...)
		}
	}
	return nil
}

func (p *planner) upgradeKubectl(ctx context.Context) error {
	if err := p.refuseNothing(); err != nil {
		return err
	}
	all, bindings, err := p.manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if !slices.ContainsFunc(m.namespaces, p.has) {
			continue
		}
		if err := p.refuseOtherWay(m.namespaces...); err != nil {
			return err
		}
		p.applyManifests(m)
		if !m.ofControlPlane() {
			continue
		}
		namespaces, err := p.handedOver(ctx)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			p.run("Give the operators their rights in namespace "+namespace, append([]string{kubectl, "apply", "-n", namespace}, bindings...)...)
		}
	}
	return nil
}

// uninstallKubectl takes every namespace back before it deletes the operators, which remove
// the finalizers of the RoleBindings. It also deletes what a removal that was interrupted has left.
func (p *planner) uninstallKubectl(ctx context.Context) error {
	all, bindings, err := p.manifests(ctx)
	if err != nil {
		return err
	}
	if err := p.refuseInUse(ctx); err != nil {
		return err
	}
	slices.Reverse(all) // the operators of the control plane are the last
	for _, m := range all {
		if err := p.deleteOperators(ctx, m, bindings); err != nil {
			return err
		}
	}
	if len(p.steps) == 0 {
		return p.deleteDefinitions(ctx)
	}
	return nil
}

// deleteOperators adds the steps that delete the operators of manifests, if the cluster has them
// or something of the operators of the control plane is left.
func (p *planner) deleteOperators(ctx context.Context, m manifests, bindings []string) error {
	installed := slices.ContainsFunc(m.namespaces, p.has)
	var namespaces []string
	if m.ofControlPlane() && !p.hasOther(systemNamespace) {
		var err error
		if namespaces, err = p.handedOver(ctx); err != nil {
			return err
		}
		remains, err := p.get(ctx, namespaceKind, "", systemNamespace)
		if err != nil {
			return err
		}
		installed = installed || len(namespaces) > 0 || remains != nil
	}
	if !installed {
		return nil
	}
	if err := p.refuseOtherWay(m.namespaces...); err != nil {
		return err
	}
	for _, namespace := range namespaces {
		p.run("Take namespace "+namespace+" back", append([]string{kubectl, deleteVerb, ignoreNotFound, "-n", namespace}, bindings...)...)
	}
	return p.deleteManifests(ctx, "Delete "+m.operators(), m.source)
}

// deleteManifests adds a step that deletes the objects of manifests, without the
// CustomResourceDefinitions unless --delete-crds is given.
func (p *planner) deleteManifests(ctx context.Context, title string, source []string) error {
	if p.DeleteCRDs {
		p.run(title+", the kinds and every object of these kinds", append([]string{kubectl, deleteVerb, ignoreNotFound}, source...)...)
		return nil
	}
	objects, err := p.objectsOf(ctx, source)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind() == definitionKind })
	p.runAll(title+", and keep the kinds", p.deletions(kept))
	return nil
}

// deletions are commands that delete objects: one for each namespace, and at last one for the
// objects without a namespace. Commands have names, as a person cannot type a standard input.
func (p *planner) deletions(objects []*unstructured.Unstructured) []Command {
	byNamespace := map[string][]string{}
	for _, o := range objects {
		byNamespace[o.GetNamespace()] = append(byNamespace[o.GetNamespace()], resourceName(o))
	}
	var commands []Command
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		if namespace != "" {
			commands = append(commands, p.command(append([]string{kubectl, deleteVerb, ignoreNotFound, "-n", namespace}, byNamespace[namespace]...)...))
		}
	}
	if names := byNamespace[""]; len(names) > 0 {
		commands = append(commands, p.command(append([]string{kubectl, deleteVerb, ignoreNotFound}, names...)...))
	}
	return commands
}

// resourceName returns KIND.GROUP/NAME as kubectl prints it. The group tells apart kinds of
// one name, of which OpenShift has some.
func resourceName(o *unstructured.Unstructured) string {
	return strings.TrimSuffix(strings.ToLower(o.GetKind())+"."+o.GroupVersionKind().Group, ".") + "/" + o.GetName()
}

// objectsOf returns the objects that kubectl reads from -f FILE or -k FOLDER.
func (p *planner) objectsOf(ctx context.Context, source []string) ([]*unstructured.Unstructured, error) {
	if source[0] != "-k" {
		return read(source[1])
	}
	content, err := p.output(ctx, kubectl, "kustomize", source[1])
	if err != nil {
		return nil, err
	}
	return parse(content)
}
