package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/bundle"
)

const deploymentKind = "Deployment"

// operatorChart returns the files of an operator's chart. Its templates are the objects of
// the operator's kustomization with placeholders.
func operatorChart(project *source.Project, operator *source.Operator, images source.Images, namespaceRights *namespaceRights, icon []byte) (output.Files, error) {
	values, definitions, err := operatorValues(project, operator, images)
	if err != nil {
		return nil, err
	}
	chart := &content{
		metadata: metadata(project, icon, operator.Package(), operator.Summary),
		values:   values, definitions: definitions,
		texts: map[string]string{
			"templates/_helpers.tpl": "operator-helpers.tpl", "templates/NOTES.txt": "operator-notes.txt", "README.md": "operator-readme.md.tpl",
		},
		words: []string{"@NAMESPACE@", operator.Namespace, "@ENVIRONMENT@\n", environment(operator), "@KINDS@", resources(operator)},
	}
	if operator.ClusterWide {
		chart.texts["templates/NOTES.txt"] = "operator-notes-cluster.txt"
		chart.texts["README.md"] = "operator-readme-cluster.md.tpl"
	}
	if err := annotate(operator, images, chart); err != nil {
		return nil, err
	}
	made, err := chart.files()
	if err != nil {
		return nil, err
	}
	templates, err := operatorTemplates(operator, namespaceRights)
	made.Include("templates", templates)
	return made, err
}

// annotate adds what Artifact Hub shows of an operator.
func annotate(operator *source.Operator, images source.Images, chart *content) error {
	var crds []map[string]string
	var examples []any
	for _, crd := range operator.CRDs {
		names := crd.Spec.Names
		crds = append(crds, map[string]string{
			"kind": names.Kind, "version": crd.Spec.Versions[0].Name, "name": crd.Name, "displayName": names.Kind,
			"description": crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description,
		})
		examples = append(examples, operator.Samples[names.Kind].Object)
	}
	var references []map[string]string
	for _, image := range images.Of(operator) {
		references = append(references, map[string]string{"name": image.Name, "image": image.Reference})
	}
	annotations := chart.metadata.Annotations
	annotations["artifacthub.io/operator"] = "true"
	annotations["artifacthub.io/operatorCapabilities"] = bundle.Capabilities
	for name, list := range map[string]any{"crds": crds, "crdsExamples": examples, "images": references} {
		encoded, err := yaml.Marshal(list) // Artifact Hub reads YAML
		if err != nil {
			return err
		}
		annotations["artifacthub.io/"+name] = string(encoded)
	}
	return nil
}

// resources are the operator's kinds for kubectl get.
func resources(operator *source.Operator) string {
	var names []string
	for _, crd := range operator.CRDs {
		names = append(names, crd.Name)
	}
	return strings.Join(names, ",")
}

// environment are the lines of a named template that add variables to $env.
func environment(operator *source.Operator) (lines string) {
	for _, image := range operator.Images {
		lines += fmt.Sprintf("{{- with .Values.images.%s }}{{ $_ := set $env %q . }}{{ end }}\n", operandKey(image), image.Variable)
	}
	if !operator.ClusterWide {
		lines += fmt.Sprintf("{{- if eq (include %q .) \"*\" }}{{ $_ := set $env \"WATCH_NAMESPACE\" \"\" }}{{ end }}\n", operator.Package()+".watch")
	}
	return lines
}

// file is where an object's template is, and when it is rendered.
type file struct{ path, condition string }

func fileOf(object *unstructured.Unstructured) file {
	switch kind := object.GetKind(); {
	case kind == "CustomResourceDefinition":
		return file{filepath.Join("crds", object.GetName()+".yaml"), ".Values.crds.install"}
	case kind == "NetworkPolicy":
		return file{"networkpolicy.yaml", ".Values.networkPolicy.enabled"}
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
		return file{"admissionpolicies.yaml", ".Values.admissionPolicies.enabled"}
	case kind == deploymentKind, kind == "ServiceAccount":
		return file{strings.ToLower(kind) + ".yaml", ""}
	case kind == "Job":
		return file{"removal.yaml", ""}
	case strings.HasSuffix(object.GetName(), "-namespaces"): // rights to RoleBindings that hand namespaces over
		return file{"namespaces.yaml", `ne (include "CHART.watch" .) "*"`}
	default:
		return file{"rbac.yaml", ""}
	}
}

func operatorTemplates(operator *source.Operator, namespaceRights *namespaceRights) (output.Files, error) {
	objects := operator.Objects
	if !operator.ClusterWide {
		objects = slices.Concat(objects, namespaceRights.policiesOf(operator))
	}
	deployment := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == deploymentKind })
	objects = append(slices.Clip(objects), removalCheck(objects[deployment]))
	texts, conditions := map[string]string{}, map[string]string{}
	for _, object := range objects {
		text, err := objectTemplate(operator, object)
		if err != nil {
			return nil, err
		}
		to := fileOf(object)
		texts[to.path] += text
		conditions[to.path] = to.condition
	}
	if !operator.ClusterWide {
		text, err := namespaceRights.template(operator)
		if err != nil {
			return nil, err
		}
		texts["rolebindings.yaml"] = text
	}
	made := output.Files{}
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		made[path] = []byte(header + strings.ReplaceAll(when(conditions[path], texts[path]), "CHART.", operator.Package()+"."))
	}
	return made, nil
}

// namespaced are the kinds of an operator's objects that are in its namespace.
var namespaced = []string{deploymentKind, "Job", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"}

// objectTemplate returns the template of one object.
func objectTemplate(operator *source.Operator, object *unstructured.Unstructured) (string, error) {
	object, p := object.DeepCopy(), &placeholders{}
	set := func(content any, path ...string) error {
		return unstructured.SetNestedField(object.Object, content, path...)
	}
	if err := set(nil, "metadata", "labels", p.lines("CHART.labels")); err != nil {
		return "", err
	}
	if slices.Contains(namespaced, object.GetKind()) {
		object.SetNamespace(p.inline("{{ .Release.Namespace | quote }}"))
	}
	var err error
	switch object.GetKind() {
	case "CustomResourceDefinition":
		err = set("keep", "metadata", "annotations", "helm.sh/resource-policy")
	case "RoleBinding", "ClusterRoleBinding":
		err = setSubjects(object, p.inline("{{ $.Release.Namespace | quote }}"))
	case "NetworkPolicy":
		err = openPorts(object, p)
	case deploymentKind:
		err = openDeployment(object, p)
	case "Job":
		_, err = openPod(object, p)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s of %s: %w", object.GetKind(), object.GetName(), operator.Name, err)
	}
	return p.encode(object)
}

func setSubjects(object *unstructured.Unstructured, namespace string) error {
	subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		subject.(map[string]any)["namespace"] = namespace
	}
	return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

// openPorts makes the ports of the API server a value.
func openPorts(object *unstructured.Unstructured, p *placeholders) error {
	rules, _, err := unstructured.NestedSlice(object.Object, "spec", "egress")
	if err != nil {
		return err
	}
	for _, rule := range rules {
		ports, _ := rule.(map[string]any)["ports"].([]any)
		if slices.ContainsFunc(ports, func(port any) bool { return port.(map[string]any)["port"] == int64(6443) }) {
			rule.(map[string]any)["ports"] = []any{p.lines("CHART.apiServerPorts")}
			return unstructured.SetNestedSlice(object.Object, rules, "spec", "egress")
		}
	}
	return fmt.Errorf("no rule admits the port 6443 of API servers")
}

// openDeployment replaces the settings of the Deployment that values have.
func openDeployment(object *unstructured.Unstructured, p *placeholders) error {
	if err := unstructured.SetNestedField(object.Object, p.inline("{{ .Values.replicas }}"), "spec", "replicas"); err != nil {
		return err
	}
	container, err := openPod(object, p)
	if err == nil {
		container[p.lines("CHART.args")] = nil
	}
	return err
}

// openPod replaces the settings of the pods that values have, and returns the container.
func openPod(object *unstructured.Unstructured, p *placeholders) (map[string]any, error) {
	template := podTemplate(object)
	template["metadata"].(map[string]any)[p.lines("CHART.podAnnotations")] = nil
	pod := template["spec"].(map[string]any)
	pod[p.lines("CHART.podSettings")] = nil
	containers, _ := pod["containers"].([]any)
	if len(containers) != 1 {
		return nil, fmt.Errorf("%d containers, and the chart has values for one", len(containers))
	}
	container := containers[0].(map[string]any)
	container["image"] = p.inline(`{{ include "CHART.image" . | quote }}`)
	container["imagePullPolicy"] = p.inline("{{ .Values.image.pullPolicy }}")
	container["resources"] = p.inline("{{ toJson .Values.resources }}")
	variables, _ := container["env"].([]any)
	variables = slices.DeleteFunc(variables, func(variable any) bool {
		return isValue(variable.(map[string]any)["name"].(string), variable.(map[string]any)["value"])
	})
	container["env"] = append(variables, p.lines("CHART.env"))
	return container, nil
}

// isValue is true for a variable of the Deployment that is a value of the chart: it has a
// constant, and the chart has no other value for it.
func isValue(name string, constant any) bool {
	return constant != nil && constant != "" && !slices.Contains(fixed, any(name))
}
