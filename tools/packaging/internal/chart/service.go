package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/reference"
)

// serviceChart returns the files of a chart that renders the resource of a service. The
// workload belongs to the operator, so the chart has no other templates.
func serviceChart(project *source.Project, operator *source.Operator, icon []byte) (output.Files, error) {
	service := operator.Service
	crd := operator.CRD(service.Kind)
	if crd == nil {
		return nil, fmt.Errorf("operators/%s/packaging.yaml: service.kind: the operator has no kind %q", operator.Name, service.Kind)
	}
	schemas, definitions, err := serviceSchemas(crd, operator.CRD(service.Policy))
	if err != nil {
		return nil, err
	}
	fields := fieldsOf(schemas["spec"].(schema))
	chart := &content{
		metadata: metadata(project, icon, service.Chart, service.Summary),
		values:   serviceValues(service, schemas, fields), definitions: definitions,
		texts: serviceTexts(service),
		words: []string{
			"@APIVERSION@", crd.Spec.Group + "/" + crd.Spec.Versions[0].Name, "@KIND@", service.Kind, "@POLICY@", service.Policy,
			"@RESOURCE@", crd.Spec.Names.Singular, "@OPERATOR@", operator.Package(), "@FIELDS@\n", fieldTable(fields), "@UNWATCHED@", unwatched(operator),
		},
	}
	made, err := chart.files()
	if err != nil {
		return nil, err
	}
	examples, err := examples(project, operator)
	made.Include("ci", examples)
	return made, err
}

// serviceSchemas returns the schemas of the specs by "spec" and "policy", which nil leaves
// out, and their common definitions.
func serviceSchemas(crd, policy *apiextensionsv1.CustomResourceDefinition) (schemas, definitions schema, err error) {
	specs := map[string]any{}
	if specs["spec"], err = specOf(crd); err != nil {
		return nil, nil, err
	}
	if policy != nil {
		if specs["policy"], err = specOf(policy); err != nil {
			return nil, nil, err
		}
	}
	converted, definitions, err := convertSchema(map[string]any{properties: specs})
	if err != nil {
		return nil, nil, err
	}
	return converted[properties].(schema), definitions, nil
}

func serviceTexts(service *source.Service) map[string]string {
	texts := map[string]string{
		"templates/_helpers.tpl": "service-helpers.tpl", "templates/NOTES.txt": "service-notes.txt", "README.md": "service-readme.md.tpl",
		"templates/resource.yaml": "service-resource.yaml", "templates/secrets.yaml": "service-secrets.yaml",
	}
	if service.Policy != "" {
		texts["templates/policies.yaml"] = "service-policies.yaml"
	}
	return texts
}

// unwatched explains a resource without a status.
func unwatched(operator *source.Operator) string {
	if operator.ClusterWide {
		return "If the resource gets no status, its operator does not run."
	}
	return "If the resource gets no status, its operator does not run, or the namespace is not handed over\nto the operator."
}

func serviceValues(service *source.Service, schemas schema, fields []field) []value {
	values := []value{
		{key: "name", comment: fmt.Sprintf("Name of the %s; empty for the name of the release.", service.Kind), defaultValue: "", schema: text},
		{key: "annotations", comment: fmt.Sprintf("Annotations of the %s.", service.Kind), defaultValue: schema{}, schema: textMap},
		{
			key: "secrets", comment: "Secrets that the chart creates: the content by key, by name. Helm also stores them in the Secret of the release. Leave out Secrets that other tools create.",
			defaultValue: schema{}, schema: mapOf(textMap),
		},
		{key: "spec", comment: fmt.Sprintf("Spec of the %s.", service.Kind), listing: "Fields:\n" + fieldList(fields), defaultValue: schema{}, schema: schemas["spec"].(schema)},
	}
	if service.Policy != "" {
		values = append(values, value{
			key: "policies", comment: fmt.Sprintf("%s objects that the chart creates: the spec by name. A policy grants file systems to namespaces. Only an administrator of the cluster can create it.", service.Policy),
			defaultValue: schema{}, schema: mapOf(schemas["policy"].(schema)),
		})
	}
	return values
}

// field is a field of a spec.
type field struct{ name, need, meaning string }

// fieldsOf lists the fields of a spec, the required ones first.
func fieldsOf(spec schema) (fields []field) {
	required, _ := spec["required"].([]any)
	all := spec[properties].(schema)
	for _, need := range []string{"required", ""} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if slices.Contains(required, any(name)) != (need == "required") {
				continue
			}
			description, _ := all[name].(schema)["description"].(string)
			fields = append(fields, field{name, need, strings.Join(strings.Fields(description), " ")})
		}
	}
	return fields
}

func fieldTable(fields []field) (rows string) {
	for _, f := range fields {
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", f.name, f.need, reference.Cell(f.meaning))
	}
	return rows
}

// fieldList has one field and the first sentence of its meaning in a line.
func fieldList(fields []field) (list string) {
	for _, f := range fields {
		name := f.name
		if f.need != "" {
			name += " (" + f.need + ")"
		}
		for i, line := range wrap(name+": "+f.summary(), 86) {
			indent := "  "
			if i > 0 {
				indent = "      "
			}
			list += indent + line + "\n"
		}
	}
	return list
}

// summary is the first sentence of the meaning without the name at its beginning: "replicas is
// the number of pods." becomes "the number of pods".
func (f field) summary() string {
	sentence, _, _ := strings.Cut(f.meaning, ". ")
	sentence = strings.TrimSuffix(sentence, ".")
	rest, begins := strings.CutPrefix(sentence, f.name+" ")
	verb, object, _ := strings.Cut(rest, " ")
	switch {
	case !begins, slices.Contains([]string{"of", "in", "that"}, verb): // the name is a noun of the sentence
		return sentence
	case verb == "is", verb == "are":
		return object
	}
	return rest
}

// examples turns the samples of the chart's kind into files of values. The same samples are
// applied to an API server by the operator's tests.
func examples(project *source.Project, operator *source.Operator) (output.Files, error) {
	samples, err := filepath.Glob(project.Path("operators", operator.Name, "config", "samples", "*.yaml"))
	if err != nil {
		return nil, err
	}
	made := output.Files{}
	for _, sample := range samples {
		objects, err := source.ReadObjects(sample)
		if err != nil {
			return nil, err
		}
		values := valuesOf(operator.Service.Kind, objects)
		if values["spec"] == nil {
			continue // a sample of another kind
		}
		if err := made.Add(strings.TrimSuffix(filepath.Base(sample), ".yaml")+"-values.yaml", values); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// valuesOf returns the values that render the objects of a sample.
func valuesOf(kind string, sample []*unstructured.Unstructured) map[string]any {
	values, secrets := map[string]any{}, map[string]any{}
	for _, object := range sample {
		switch object.GetKind() {
		case kind:
			values["name"], values["spec"] = object.GetName(), object.Object["spec"]
		case "Secret":
			secrets[object.GetName()] = object.Object["stringData"]
			values["secrets"] = secrets
		}
	}
	return values
}
