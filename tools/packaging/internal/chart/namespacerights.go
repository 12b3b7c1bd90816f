package chart

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/tools/internal/source"
)

// namespaceRights has the objects for namespaces that are handed over, besides the objects of
// the operators' own kustomizations.
type namespaceRights struct {
	// bindings are the RoleBindings of config/namespace by the account's name.
	bindings map[string]*unstructured.Unstructured
	// policies are the ValidatingAdmissionPolicy of RoleBindings and its binding.
	policies []*unstructured.Unstructured
}

// policyName and policyAccounts are the policy's name, and the operators' accounts in its
// condition.
const (
	policyName     = "asterism-rolebindings"
	policyAccounts = "asterism-[a-z0-9-]+-operator"
)

func readNamespaceRights(project *source.Project) (*namespaceRights, error) {
	read := &namespaceRights{bindings: map[string]*unstructured.Unstructured{}}
	bindings, err := source.Render(project.Path("config", "namespace"))
	if err != nil {
		return nil, err
	}
	for _, binding := range bindings {
		read.bindings[binding.GetName()] = binding
	}
	objects, err := source.Render(project.Path("config", "control-plane"))
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetName() == policyName {
			read.policies = append(read.policies, object)
		}
	}
	if len(read.policies) != 2 {
		return nil, fmt.Errorf("config/control-plane has %d objects %s, and needs the policy and its binding", len(read.policies), policyName)
	}
	return read, nil
}

// policiesOf returns the policy of RoleBindings for one account, and its binding. The
// kustomization has one policy for all accounts, but several releases of Helm cannot share an
// object.
func (r *namespaceRights) policiesOf(operator *source.Operator) (objects []*unstructured.Unstructured) {
	for _, shared := range r.policies {
		object := shared.DeepCopy()
		replaceText(object.Object, policyAccounts, operator.Account)
		replaceText(object.Object, policyName, "asterism-"+operator.Name+"-rolebindings")
		objects = append(objects, object)
	}
	return objects
}

// replaceText replaces a text in every string of an object.
func replaceText(node any, old, replacement string) any {
	switch node := node.(type) {
	case string:
		return strings.ReplaceAll(node, old, replacement)
	case map[string]any:
		for key, below := range node {
			node[key] = replaceText(below, old, replacement)
		}
	case []any:
		for i, below := range node {
			node[i] = replaceText(below, old, replacement)
		}
	}
	return node
}

// template renders a RoleBinding in each listed namespace, or a ClusterRoleBinding for every
// namespace.
func (r *namespaceRights) template(operator *source.Operator) (string, error) {
	binding := r.bindings[operator.Account]
	if binding == nil {
		return "", fmt.Errorf("config/namespace has no RoleBinding %s", operator.Account)
	}
	everywhere, err := bindingTemplate(binding, "ClusterRoleBinding", "")
	if err != nil {
		return "", err
	}
	each, err := bindingTemplate(binding, "RoleBinding", "{{ . | quote }}")
	return `{{- if eq (include "CHART.watch" .) "*" }}` + "\n" + everywhere +
		`{{- else }}{{- range compact (splitList " " (include "CHART.watch" .)) }}` + "\n" + each + "{{- end }}{{- end }}\n", err
}

func bindingTemplate(binding *unstructured.Unstructured, kind, namespace string) (string, error) {
	object, p := binding.DeepCopy(), &placeholders{}
	object.SetKind(kind)
	unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
	if namespace != "" {
		object.SetNamespace(p.inline(namespace))
	}
	if err := unstructured.SetNestedField(object.Object, nil, "metadata", "labels", p.lines("CHART.labels")); err != nil {
		return "", err
	}
	if err := setSubjects(object, p.inline("{{ $.Release.Namespace | quote }}")); err != nil {
		return "", err
	}
	return p.encode(object)
}
