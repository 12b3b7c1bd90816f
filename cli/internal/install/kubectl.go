package install

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manifests are the arguments by which kubectl finds the objects of the operators and the
// RoleBindings of a namespace.
type manifests struct {
	operators, sharedVolume, namespace []string
}

// manifests of a release are files. A folder with a kustomization is one of "make push", and
// has all operators that it installs.
func (p *planner) manifests() (manifests, error) {
	if _, err := os.Stat(filepath.Join(p.From, "kustomization.yaml")); err == nil {
		return manifests{operators: []string{"-k", p.From}, namespace: []string{"-k", "config/namespace"}}, nil
	}
	dist := func(file string) string { return filepath.Join(p.From, "dist", file) }
	if _, err := read(dist("install.yaml")); err != nil {
		return manifests{}, err
	}
	return manifests{
		operators:    []string{"-f", dist("install.yaml")},
		sharedVolume: []string{"-f", dist("shared-volume.yaml")},
		namespace:    []string{"-f", dist("namespace.yaml")},
	}, nil
}

// applyManifests adds a step that applies manifests server-side, because the CRDs are too big
// for an annotation.
func (p *planner) applyManifests(title string, source []string) {
	p.run(title, append([]string{kubectl, "apply", "--server-side"}, source...)...)
}

func (p *planner) installKubectl(ctx context.Context) error {
	m, err := p.manifests()
	if err != nil {
		return err
	}
	p.applyManifests("Apply the operators of the control plane", m.operators)
	p.awaitOperators(systemNamespace)
	for _, namespace := range p.Namespaces {
		if err := p.applyNamespace(ctx, namespace); err != nil {
			return err
		}
		p.run("Hand namespace "+namespace+" over to the operators", append([]string{kubectl, "apply", "-n", namespace}, m.namespace...)...)
	}
	if p.SharedVolume && m.sharedVolume != nil {
		p.applyManifests("Apply the operator of shared volumes", m.sharedVolume)
		p.awaitOperators(storageNamespace)
	}
	return nil
}

func (p *planner) upgradeKubectl(ctx context.Context) error {
	if err := p.refuseNothing(); err != nil {
		return err
	}
	m, err := p.manifests()
	if err != nil {
		return err
	}
	p.applyManifests("Apply the operators of the newer release", m.operators)
	p.awaitOperators(systemNamespace)
	namespaces, err := p.handedOver(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		p.run("Give the operators their rights in namespace "+namespace, append([]string{kubectl, "apply", "-n", namespace}, m.namespace...)...)
	}
	if p.has(storageNamespace) && m.sharedVolume != nil {
		p.applyManifests("Apply the operator of shared volumes", m.sharedVolume)
		p.awaitOperators(storageNamespace)
	}
	return nil
}

// uninstallKubectl takes every namespace back before it deletes the operators, which remove
// the finalizers of the RoleBindings.
func (p *planner) uninstallKubectl(ctx context.Context) error {
	m, err := p.manifests()
	if err != nil {
		return err
	}
	if err := p.refuseInUse(ctx); err != nil {
		return err
	}
	namespaces, err := p.handedOver(ctx)
	if err != nil {
		return err
	}
	remains, err := p.get(ctx, namespaceKind, "", systemNamespace)
	if err != nil {
		return err
	}
	if p.nothing() && len(namespaces) == 0 && remains == nil {
		return p.deleteDefinitions(ctx)
	}
	for _, namespace := range namespaces {
		p.run("Take namespace "+namespace+" back", append([]string{kubectl, deleteVerb, ignoreNotFound, "-n", namespace}, m.namespace...)...)
	}
	if p.has(storageNamespace) && m.sharedVolume != nil {
		if err := p.deleteManifests(ctx, "Delete the operator of shared volumes", m.sharedVolume); err != nil {
			return err
		}
	}
	return p.deleteManifests(ctx, "Delete the operators", m.operators)
}

// deleteManifests adds a step that deletes the objects of manifests, without the
// CustomResourceDefinitions unless --delete-crds is given.
func (p *planner) deleteManifests(ctx context.Context, title string, source []string) error {
	if p.DeleteCRDs {
		p.run(title+", the kinds and every object of these kinds", append([]string{kubectl, deleteVerb, ignoreNotFound}, source...)...)
		return nil
	}
	content, err := p.contentOf(ctx, source)
	if err != nil {
		return err
	}
	objects, err := parse(content)
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

// contentOf returns the objects that kubectl reads from -f FILE or -k FOLDER.
func (p *planner) contentOf(ctx context.Context, source []string) ([]byte, error) {
	if source[0] == "-k" {
		return p.output(ctx, kubectl, "kustomize", source[1])
	}
	content, err := os.ReadFile(source[1])
	return bytes.TrimSpace(content), err
}
