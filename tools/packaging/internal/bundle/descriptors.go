package bundle

import (
	"slices"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Prefixes of the descriptors that OpenShift's console turns into form fields and links.
const (
	consoleUI         = "urn:alm:descriptor:com.tectonic.ui:"
	consoleKubernetes = "urn:alm:descriptor:io.kubernetes"
)

// described returns the description of a kind for the console, made from its schema: the
// names, texts and types of the fields are those of `kubectl explain`.
func described(crd *apiextensionsv1.CustomResourceDefinition) v1alpha1.CRDDescription {
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	described := v1alpha1.CRDDescription{
		Name: crd.Name, Kind: crd.Spec.Names.Kind, Version: version.Name,
		DisplayName: words(crd.Spec.Names.Kind), Description: oneLine(schema.Description),
	}
	for _, field := range fieldsOf(schema.Properties["spec"]) {
		path, descriptors := field.descriptors()
		described.SpecDescriptors = append(described.SpecDescriptors, v1alpha1.SpecDescriptor{
			Path: path, DisplayName: words(field.name), Description: oneLine(field.schema.Description), XDescriptors: descriptors,
		})
	}
	for _, field := range fieldsOf(schema.Properties["status"]) {
		var descriptors []string
		if field.name == "conditions" {
			descriptors = []string{consoleKubernetes + ".conditions"}
		}
		described.StatusDescriptors = append(described.StatusDescriptors, v1alpha1.StatusDescriptor{
			Path: field.name, DisplayName: words(field.name), Description: oneLine(field.schema.Description), XDescriptors: descriptors,
		})
	}
	return described
}

type field struct {
	name   string
	schema apiextensionsv1.JSONSchemaProps
}

func fieldsOf(object apiextensionsv1.JSONSchemaProps) []field {
	fields := make([]field, 0, len(object.Properties))
	for name, schema := range object.Properties {
		fields = append(fields, field{name, schema})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// descriptors returns the path of a form field, and its type in the console. The path of a
// reference is the path of its name.
func (f field) descriptors() (path string, descriptors []string) {
	switch {
	case strings.HasSuffix(f.name, "SecretRef"):
		return f.name + ".name", []string{consoleKubernetes + ":Secret"}
	case f.name == "replicas":
		return f.name, []string{consoleUI + "podCount"}
	case f.name == "resources":
		return f.name, []string{consoleUI + "resourceRequirements"}
	case f.schema.Type == "boolean":
		return f.name, []string{consoleUI + "booleanSwitch"}
	case f.schema.Type == "integer":
		return f.name, []string{consoleUI + "number"}
	case len(f.schema.Enum) > 0:
		for _, value := range f.schema.Enum {
			descriptors = append(descriptors, consoleUI+"select:"+strings.Trim(string(value.Raw), `"`))
		}
		return f.name, descriptors
	case f.schema.Type == "string":
		return f.name, []string{consoleUI + "text"}
	}
	return f.name, nil
}

// words splits a name: "apiDatabaseSecretRef" becomes "API Database Secret", and "NovaAPI"
// becomes "Nova API".
func words(name string) string {
	name = strings.TrimSuffix(name, "Ref")
	if rest, found := strings.CutPrefix(name, "api"); found {
		name = "API" + rest
	}
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		startsWord := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord {
			b.WriteRune(' ')
		}
		if i == 0 {
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
