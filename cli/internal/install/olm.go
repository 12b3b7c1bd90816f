package install

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamltext "sigs.k8s.io/yaml"
)

// Names of the objects of docs/guides/openshift.md.
const (
	catalogName  = "asterism" // also of the OperatorGroups and Subscriptions
	metaPackage  = "meta-operator"
	storePackage = "shared-volume-operator"
)

var (
	catalogKind      = olmKind("v1alpha1", "CatalogSource")
	subscriptionKind = olmKind("v1alpha1", "Subscription")
	planKind         = olmKind("v1alpha1", "InstallPlan")
	versionKind      = olmKind("v1alpha1", "ClusterServiceVersion")
	groupKind        = olmKind("v1", "OperatorGroup")
)

func olmKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "operators.coreos.com", Version: version, Kind: kind}
}

// subscription has the objects of one Subscription.
//
//go:embed subscription.yaml
var subscription string

var subscriptionTemplate = template.Must(template.New("subscription.yaml").Option("missingkey=error").Parse(subscription))

// subscribed is a Subscription that the plan creates.
type subscribed struct {
	Namespace, Package, CatalogNamespace, Channel string
	Targets                                       string // of the OperatorGroup; empty for all namespaces
}

func (p *planner) installOLM(ctx context.Context) error {
	if err := p.requireOLM(ctx); err != nil {
		return err
	}
	if err := p.catalog("Add the catalog of the release"); err != nil {
		return err
	}
	targets, err := p.targets(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range p.Namespaces {
		if err := p.applyNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if err := p.applyOperatorNamespaces(); err != nil {
		return err
	}
	if err := p.policies(); err != nil {
		return err
	}
	if err := p.subscribe(systemNamespace, metaPackage, targets, "Subscribe to the operators of the control plane"); err != nil {
		return err
	}
	if p.SharedVolume {
		return p.subscribe(storageNamespace, storePackage, "", "Subscribe to the operator of shared volumes")
	}
	return nil
}

func (p *planner) upgradeOLM(ctx context.Context) error {
	if err := p.requireOLM(ctx); err != nil {
		return err
	}
	if err := p.refuseNothing(); err != nil {
		return err
	}
	if p.has(systemNamespace) {
		if err := p.policies(); err != nil {
			return err
		}
	}
	if err := p.catalog("Give OLM the catalog of the newer release"); err != nil {
		return err
	}
	if p.has(systemNamespace) {
		if err := p.awaitVersion(systemNamespace, metaPackage); err != nil {
			return err
		}
	}
	if p.has(storageNamespace) {
		return p.awaitVersion(storageNamespace, storePackage)
	}
	return nil
}

func (p *planner) uninstallOLM(ctx context.Context) error {
	if err := p.requireOLM(ctx); err != nil {
		return err
	}
	if err := p.refuseInUse(ctx); err != nil {
		return err
	}
	var removed []string
	for _, namespace := range []string{systemNamespace, storageNamespace} {
		if err := p.awaitPlans(ctx, namespace); err != nil {
			return err
		}
		packages, err := p.packages(ctx, namespace)
		if err != nil {
			return err
		}
		groups, err := p.list(ctx, groupKind, namespace)
		if err != nil {
			return err
		}
		p.remove("Delete the operators of namespace "+namespace, slices.Concat(packages, groups))
		if len(packages)+len(groups) > 0 { // a plan that installs has an OperatorGroup, and perhaps nothing else yet
			removed = append(removed, namespace)
		}
	}
	p.deleteRepeated(removed)
	roles, err := p.rolesOfUsers(ctx)
	if err != nil {
		return err
	}
	p.remove("Delete the roles of users", roles)
	if !p.hasOther(systemNamespace) { // which would have the policies, too
		policies, err := p.existing(ctx, filepath.Join(p.From, "dist", "policies.yaml"))
		if err != nil {
			return err
		}
		p.remove("Delete the policies of the operators", policies)
	}
	catalog, err := p.get(ctx, catalogKind, p.CatalogNamespace, catalogName)
	if err != nil {
		return err
	}
	if catalog != nil {
		p.remove("Delete the catalog", []*unstructured.Unstructured{catalog})
	}
	return p.deleteDefinitions(ctx)
}

// rolesOfUsers returns the ClusterRoles of the bundles, which give users rights on the kinds: OLM
// creates them, and keeps them when it deletes the operators. OLM itself deletes the roles that
// it makes for an OperatorGroup, and the roles that it makes for a CustomResourceDefinition have
// this as owner.
func (p *planner) rolesOfUsers(ctx context.Context) ([]*unstructured.Unstructured, error) {
	roles, err := p.list(ctx, roleKind, "")
	return slices.DeleteFunc(roles, func(o *unstructured.Unstructured) bool {
		labels, namespace := o.GetLabels(), systemNamespace
		if labels["app.kubernetes.io/name"] == storePackage {
			namespace = storageNamespace
		}
		installed, exists := p.found[namespace]
		otherWay := exists && installed.way != OLM
		return otherWay || labels["app.kubernetes.io/part-of"] != "asterism" || labels["olm.managed"] != "true"
	}), err
}

// requireOLM returns an error if the API server does not serve OLM's kinds.
func (p *planner) requireOLM(ctx context.Context) error {
	_, err := p.get(ctx, groupKind, systemNamespace, catalogName)
	if meta.IsNoMatchError(errors.Unwrap(err)) {
		return errors.New("the cluster has no OLM v0: use --with helm or --with kubectl")
	}
	return err
}

// catalog adds the steps that apply the CatalogSource of the release and wait for it.
func (p *planner) catalog(title string) error {
	objects, err := read(filepath.Join(p.From, "catalogsource.yaml"))
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace(p.CatalogNamespace)
		if p.Catalog != "" {
			if err := unstructured.SetNestedField(o.Object, p.Catalog, "spec", "image"); err != nil {
				return err
			}
		}
	}
	if err := p.apply(title, "", objects); err != nil {
		return err
	}
	p.add("Wait until OLM can read the catalog", "", func(ctx context.Context, say func(string)) error {
		return p.await(ctx, say, p.catalogReady)
	})
	return nil
}

// targets are the namespaces of the options and those that the OperatorGroup has already, as a
// list in YAML: a namespace that left the list would keep ControlPlanes without an operator. It is
// empty for an OperatorGroup that has all namespaces, or selects them by their labels.
func (p *planner) targets(ctx context.Context) (string, error) {
	groups, err := p.list(ctx, groupKind, systemNamespace)
	if err != nil {
		return "", err
	}
	var targets []string
	for _, group := range groups {
		if group.GetName() != catalogName {
			return "", fmt.Errorf("%s exists, and OLM installs nothing in a namespace with two OperatorGroups: delete it", name(group))
		}
		if targets, _, err = unstructured.NestedStringSlice(group.Object, "spec", "targetNamespaces"); len(targets) == 0 {
			return "", err
		}
	}
	for _, namespace := range p.Namespaces {
		if !slices.Contains(targets, namespace) {
			targets = append(targets, namespace)
		}
	}
	return "[" + strings.Join(targets, ", ") + "]", nil
}

// applyNamespace adds a step unless the namespace exists.
func (p *planner) applyNamespace(ctx context.Context, namespace string) error {
	found, err := p.get(ctx, namespaceKind, "", namespace)
	if err != nil || found != nil {
		return err
	}
	return p.apply("Create namespace "+namespace, "", []*unstructured.Unstructured{namespaceObject(namespace)})
}

// applyOperatorNamespaces adds a step for the namespaces of the operators.
func (p *planner) applyOperatorNamespaces() error {
	var objects []*unstructured.Unstructured
	for _, name := range []string{systemNamespace, storageNamespace} {
		objects = append(objects, namespaceObject(name))
	}
	return p.apply("Create the namespaces of the operators", "", objects)
}

// namespaceObject returns a namespace whose pods are restricted. An administrator changes the label
// before a compute with driver Libvirt runs in it.
func namespaceObject(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(namespaceKind)
	o.SetName(name)
	o.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	return o
}

// subscribe adds the steps that apply a Subscription and wait for its operators.
func (p *planner) subscribe(namespace, pack, targets, title string) error {
	var content bytes.Buffer
	err := subscriptionTemplate.Execute(&content, subscribed{
		Namespace: namespace, Package: pack, CatalogNamespace: p.CatalogNamespace, Channel: p.Channel, Targets: targets,
	})
	if err != nil {
		return err
	}
	objects, err := parse(content.Bytes())
	if err != nil {
		return err
	}
	if err := p.apply(title, strings.TrimSpace(content.String()), objects); err != nil {
		return err
	}
	return p.awaitVersion(namespace, pack)
}

// awaitVersion adds a step that waits for the version of the release.
func (p *planner) awaitVersion(namespace, pack string) error {
	version, err := p.version()
	if err != nil {
		return err
	}
	wanted := pack + ".v" + version
	p.add("Wait until OLM has installed "+wanted+" and what it requires", "", func(ctx context.Context, say func(string)) error {
		return p.await(ctx, say, func(ctx context.Context) (bool, string, error) { return p.versionReady(ctx, namespace, wanted) })
	})
	return nil
}

// version returns the version of the release.
func (p *planner) version() (string, error) {
	path := filepath.Join(p.From, "images.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: name the folder of a release with --from. \"make release\" writes such a folder", err)
	}
	var list struct{ Version string }
	if err := yamltext.Unmarshal(content, &list); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if list.Version == "" {
		return "", fmt.Errorf("%s names no version: it is not the list of a release", path)
	}
	return list.Version, nil
}

// policies adds the policies that a bundle cannot contain.
func (p *planner) policies() error {
	path := filepath.Join(p.From, "dist", "policies.yaml")
	objects, err := read(path)
	if err != nil {
		return err
	}
	return p.apply("Apply the policies that a bundle cannot contain", "# the objects of "+path+":\n"+names(objects), objects)
}

// existing returns the objects of a file that the cluster has.
func (p *planner) existing(ctx context.Context, path string) ([]*unstructured.Unstructured, error) {
	objects, err := read(path)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		found, err := p.get(ctx, o.GroupVersionKind(), o.GetNamespace(), o.GetName())
		if err != nil {
			return nil, err
		}
		if found != nil {
			all = append(all, found)
		}
	}
	return all, nil
}

func field(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// oneLine joins parts of a message.
func oneLine(parts ...string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// because adds the line that explains a state, if there is one.
func because(state, line string) string {
	return cmp.Or(strings.TrimSuffix(oneLine(state)+": "+oneLine(line), ": "), state)
}
