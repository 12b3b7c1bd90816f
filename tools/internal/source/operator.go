package source

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Operator has the manifests and the packaging.yaml of one operator.
type Operator struct {
	// Name is the name of the operator's directory, for example nova-api.
	Name string `json:"-"`

	// DisplayName, Summary (one line) and Description (Markdown) are shown in catalogs.
	DisplayName string `json:"displayName"`
	Summary     string `json:"summary"`
	Description string `json:"description"`
	// Categories are categories of OperatorHub.
	Categories []string `json:"categories"`
	// Kinds are the operator's kinds, in the order of their CRDs' names.
	Kinds []Kind `json:"kinds"`
	// Requires are the operators that this operator's kinds need.
	Requires []string `json:"requires,omitempty"`
	// Standalone is true for an operator that users install by its name. Catalogs hide
	// the other operators.
	Standalone bool `json:"standalone,omitempty"`
	// InitialResource is true if the console offers to create the operator's first kind
	// after the installation.
	InitialResource bool `json:"initialResource,omitempty"`
	// ClusterWide is true for an operator that watches every namespace.
	ClusterWide bool `json:"clusterWide,omitempty"`
	// Namespace is the namespace in which the operator is installed.
	Namespace string `json:"namespace"`
	// CSI is true for an operator that installs a CSI driver.
	CSI bool `json:"csi,omitempty"`
	// Images are the images that the operator starts, by environment variable.
	Images []Image `json:"images,omitempty"`
	// Service is the Helm chart of the service, besides the chart of the operator.
	Service *Service `json:"service,omitempty"`

	Deployment *appsv1.Deployment                          `json:"-"`
	Account    string                                      `json:"-"`
	CRDs       []*apiextensionsv1.CustomResourceDefinition `json:"-"`
	// NamespaceRules are the rights in each watched namespace, or in every namespace of a
	// ClusterWide operator. They include the Lease, which needs the operator's own namespace.
	NamespaceRules []rbacv1.PolicyRule `json:"-"`
	// ClusterRules are the rights in the whole cluster.
	ClusterRules []rbacv1.PolicyRule `json:"-"`
	// UserRoles are the ClusterRoles that aggregate to edit, admin and view.
	UserRoles []*rbacv1.ClusterRole `json:"-"`
	// Samples has an example for each kind.
	Samples map[string]*unstructured.Unstructured `json:"-"`
	// Objects are all rendered objects.
	Objects []*unstructured.Unstructured `json:"-"`
}

// Kind describes a kind of an operator.
type Kind struct {
	// Name is the kind, for example NovaAPI.
	Name string `json:"name"`
	// Sample is the file in config/samples with the example that catalogs show.
	Sample string `json:"sample"`
	// Creates has the kinds of the objects that the operator creates for an object of this
	// kind, by their API version, for example apps/v1: [Deployment].
	Creates map[string][]string `json:"creates,omitempty"`
}

// Service describes a Helm chart that renders the resource of a service.
type Service struct {
	// Chart is the name of the chart, and Summary its description in one line.
	Chart   string `json:"chart"`
	Summary string `json:"summary"`
	// Kind is the kind of the resource.
	Kind string `json:"kind"`
	// Policy is a cluster-scoped kind of which the chart can render objects.
	Policy string `json:"policy,omitempty"`
}

// CRD returns the definition of a kind, nil if the operator does not have the kind.
func (o *Operator) CRD(kind string) *apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(o.CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Names.Kind == kind })
	if i < 0 {
		return nil
	}
	return o.CRDs[i]
}

// Package is the name of the operator's package and of its image, for example
// nova-api-operator.
func (o *Operator) Package() string { return o.Name + "-operator" }

func (p *Project) readOperator(name string) (*Operator, error) {
	operator := &Operator{Name: name, Samples: map[string]*unstructured.Unstructured{}}
	folder := p.Path("operators", name)
	if err := ReadYAML(filepath.Join(folder, "packaging.yaml"), operator); err != nil {
		return nil, err
	}
	objects, err := Render(filepath.Join(folder, "config"))
	if err != nil {
		return nil, err
	}
	operator.Objects = objects
	if err := operator.sort(); err != nil {
		return nil, fmt.Errorf("operators/%s/config: %w", name, err)
	}
	return operator, operator.readSamples(filepath.Join(folder, "config", "samples"))
}

// sort assigns each rendered object to a field.
func (o *Operator) sort() error {
	found := &rights{bound: map[string]bool{}}
	for _, object := range o.Objects {
		if err := o.assign(object, found); err != nil {
			return err
		}
	}
	return o.assignRights(found)
}

// rights are the rendered objects that define rights.
type rights struct {
	clusterRoles []*rbacv1.ClusterRole
	bound        map[string]bool     // names of ClusterRoles that a ClusterRoleBinding names
	own          []rbacv1.PolicyRule // in the operator's own namespace
}

func (o *Operator) assign(object *unstructured.Unstructured, found *rights) error {
	switch kind := object.GetKind(); kind {
	case "Deployment":
		o.Deployment = &appsv1.Deployment{}
		return convert(object, o.Deployment)
	case "ServiceAccount":
		o.Account = object.GetName()
	case "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		o.CRDs = append(o.CRDs, crd)
		return convert(object, crd)
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		found.clusterRoles = append(found.clusterRoles, role)
		return convert(object, role)
	case "ClusterRoleBinding":
		binding := &rbacv1.ClusterRoleBinding{}
		err := convert(object, binding)
		found.bound[binding.RoleRef.Name] = true
		return err
	case "Role":
		role := &rbacv1.Role{}
		err := convert(object, role)
		found.own = append(found.own, role.Rules...)
		return err
	case "RoleBinding", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
	default:
		return fmt.Errorf("%s %s: no package knows this kind", kind, object.GetName())
	}
	return nil
}

// assignRights refuses a ClusterRole without a known purpose: users would get rights that
// the operator was meant to have.
func (o *Operator) assignRights(found *rights) error {
	slices.SortFunc(found.clusterRoles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	for _, role := range found.clusterRoles {
		switch {
		case role.Name == o.NamespacesRole(): // the OperatorGroups of OLM replace its RoleBindings
		case found.bound[role.Name]:
			o.ClusterRules = append(o.ClusterRules, role.Rules...)
		case role.Name == o.Account:
			o.NamespaceRules = slices.Clone(role.Rules)
		case aggregates(role):
			o.UserRoles = append(o.UserRoles, role)
		default:
			return fmt.Errorf("ClusterRole %s has neither a ClusterRoleBinding nor a label %s…: add one of them", role.Name, aggregation)
		}
	}
	for _, rule := range found.own {
		if !slices.ContainsFunc(o.NamespaceRules, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
			o.NamespaceRules = append(o.NamespaceRules, rule)
		}
	}
	return nil
}

// NamespacesRole is the name of the ClusterRole for the RoleBindings that hand namespaces
// over.
func (o *Operator) NamespacesRole() string { return "asterism-" + o.Name + "-namespaces" }

// aggregation begins the labels of ClusterRoles for users.
const aggregation = "rbac.authorization.k8s.io/aggregate-to-"

func aggregates(role *rbacv1.ClusterRole) bool {
	for label, value := range role.Labels {
		if strings.HasPrefix(label, aggregation) && value == "true" {
			return true
		}
	}
	return false
}

// readSamples reads the sample of each kind, and refuses a list of kinds that differs from
// the CRDs.
func (o *Operator) readSamples(folder string) error {
	for _, kind := range o.Kinds {
		object, err := readSample(filepath.Join(folder, kind.Sample), kind.Name)
		if err != nil {
			return err
		}
		o.Samples[kind.Name] = object
	}
	if len(o.Kinds) != len(o.CRDs) || slices.ContainsFunc(o.CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return o.Samples[crd.Spec.Names.Kind] == nil
	}) {
		return fmt.Errorf("operators/%s/packaging.yaml: kinds must list each of the operator's %d kinds once", o.Name, len(o.CRDs))
	}
	return nil
}

// readSample returns the first object of a kind in a file.
func readSample(file, kind string) (*unstructured.Unstructured, error) {
	objects, err := ReadObjects(file)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetKind() == kind {
			return object, nil
		}
	}
	return nil, fmt.Errorf("%s has no object of kind %s", file, kind)
}

// ReadObjects reads the objects of a file.
func ReadObjects(file string) (objects []*unstructured.Unstructured, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Container returns the only container of a Deployment.
func Container(deployment *appsv1.Deployment) *corev1.Container {
	return &deployment.Spec.Template.Spec.Containers[0]
}

func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
