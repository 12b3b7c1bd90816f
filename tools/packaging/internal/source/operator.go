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
	// People are the ClusterRoles that aggregate to edit, admin and view.
	People []*rbacv1.ClusterRole `json:"-"`
	// HandOver are the ClusterRole and ClusterRoleBinding for the RoleBindings that hand
	// namespaces over. OLM's OperatorGroups replace them.
	HandOver []*unstructured.Unstructured `json:"-"`
	// Guards are the NetworkPolicy and the ValidatingAdmissionPolicies with their bindings.
	Guards []*unstructured.Unstructured `json:"-"`
	// Samples has an example for each kind.
	Samples map[string]*unstructured.Unstructured `json:"-"`
	// Objects are all rendered objects.
	Objects []*unstructured.Unstructured `json:"-"`
}

// Image is an image that an operator starts.
type Image struct {
	// Variable is the environment variable with the image, for example RELATED_IMAGE_NOVA.
	Variable string `json:"variable"`
	// Image is the reference of the image.
	Image string `json:"image"`
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

// Package is the name of the operator's package, for example nova-api-operator.
func (o *Operator) Package() string { return o.Name + "-operator" }

// ImageName is the name of the operator's own image without registry and tag.
func (o *Operator) ImageName() string { return o.Name + "-operator" }

func (p *Project) readOperator(name string) (*Operator, error) {
	operator := &Operator{Name: name, Samples: map[string]*unstructured.Unstructured{}}
	folder := p.Path("operators", name)
	if err := readYAML(filepath.Join(folder, "packaging.yaml"), operator); err != nil {
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
	clusterRoles, bound := map[string]*rbacv1.ClusterRole{}, map[string]bool{}
	var own []rbacv1.PolicyRule // in the operator's own namespace
	for _, object := range o.Objects {
		var err error
		switch kind := object.GetKind(); kind {
		case "Deployment":
			o.Deployment = &appsv1.Deployment{}
			err = convert(object, o.Deployment)
		case "ServiceAccount":
			o.Account = object.GetName()
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err = convert(object, crd)
			o.CRDs = append(o.CRDs, crd)
		case "ClusterRole":
			role := &rbacv1.ClusterRole{}
			err = convert(object, role)
			clusterRoles[role.Name] = role
		case "ClusterRoleBinding":
			binding := &rbacv1.ClusterRoleBinding{}
			err = convert(object, binding)
			bound[binding.RoleRef.Name] = true
		case "Role":
			role := &rbacv1.Role{}
			err = convert(object, role)
			own = append(own, role.Rules...)
		case "RoleBinding":
		case "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			o.Guards = append(o.Guards, object)
		default:
			err = fmt.Errorf("%s %s: no package knows this kind", kind, object.GetName())
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(object.GetName(), "-namespaces") {
			o.HandOver = append(o.HandOver, object)
		}
	}
	o.sortRights(clusterRoles, bound)
	for _, rule := range own {
		if !slices.ContainsFunc(o.NamespaceRules, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
			o.NamespaceRules = append(o.NamespaceRules, rule)
		}
	}
	return nil
}

func (o *Operator) sortRights(roles map[string]*rbacv1.ClusterRole, bound map[string]bool) {
	names := make([]string, 0, len(roles))
	for name := range roles {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		role := roles[name]
		switch {
		case strings.HasSuffix(name, "-namespaces"):
		case bound[name]:
			o.ClusterRules = append(o.ClusterRules, role.Rules...)
		case name == o.Account:
			o.NamespaceRules = slices.Clone(role.Rules)
		default:
			o.People = append(o.People, role)
		}
	}
}

// readSamples keeps the first sample of each kind of the operator.
func (o *Operator) readSamples(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	slices.Reverse(files) // the plainest sample has the longest name: nova.yaml follows nova-given.yaml
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if kind := object.GetKind(); o.owns(kind) && o.Samples[kind] == nil {
				o.Samples[kind] = object
			}
		}
	}
	for _, crd := range o.CRDs {
		if o.Samples[crd.Spec.Names.Kind] == nil {
			return fmt.Errorf("%s has no sample of %s", folder, crd.Spec.Names.Kind)
		}
	}
	return nil
}

func (o *Operator) owns(kind string) bool { return o.CRD(kind) != nil }

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
