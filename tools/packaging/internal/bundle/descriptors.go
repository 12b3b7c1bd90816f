package bundle

import (
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"asterism.dev/tools/packaging/internal/source"
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
	for _, field := range source.Fields(schema.Properties["spec"]) {
		path, descriptors := descriptorsOf(field)
		described.SpecDescriptors = append(described.SpecDescriptors, v1alpha1.SpecDescriptor{
			Path: path, DisplayName: words(field.Name), Description: oneLine(field.Schema.Description), XDescriptors: descriptors,
		})
	}
	for _, field := range source.Fields(schema.Properties["status"]) {
		var descriptors []string
		if field.Name == "conditions" {
			descriptors = []string{consoleKubernetes + ".conditions"}
		}
		described.StatusDescriptors = append(described.StatusDescriptors, v1alpha1.StatusDescriptor{
			Path: field.Name, DisplayName: words(field.Name), Description: oneLine(field.Schema.Description), XDescriptors: descriptors,
		})
	}
	return described
}

// descriptorsOf returns the path of a form field, and its type in the console. The path of a
// reference is the path of its name.
func descriptorsOf(f source.Field) (path string, descriptors []string) {
	switch {
	case strings.HasSuffix(f.Name, "SecretRef"):
		return f.Name + ".name", []string{consoleKubernetes + ":Secret"}
	case f.Name == "replicas":
		return f.Name, []string{consoleUI + "podCount"}
	case f.Name == "resources":
		return f.Name, []string{consoleUI + "resourceRequirements"}
	case f.Schema.Type == "boolean":
		return f.Name, []string{consoleUI + "booleanSwitch"}
	case f.Schema.Type == "integer":
		return f.Name, []string{consoleUI + "number"}
	case len(f.Schema.Enum) > 0:
		for _, value := range f.Schema.Enum {
			descriptors = append(descriptors, consoleUI+"select:"+strings.Trim(string(value.Raw), `"`))
		}
		return f.Name, descriptors
	case f.Schema.Type == "string":
		return f.Name, []string{consoleUI + "text"}
	}
	return f.Name, nil
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
