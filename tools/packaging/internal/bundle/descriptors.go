package bundle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"asterism.dev/tools/internal/source"
)

// Prefixes of the descriptors that OpenShift's console turns into form fields and links.
const (
	consoleUI         = "urn:alm:descriptor:com.tectonic.ui:"
	consoleKubernetes = "urn:alm:descriptor:io.kubernetes"
)

// internal are fields of a status that users do not need.
var internal = []string{"completed", "configHash", "selector"}

// referenced are the kinds of references by the ends of their fields' names, in the
// notation of the console.
var referenced = []struct{ field, kind string }{
	{"SecretRef", "Secret"},
	{"secretRef", "Secret"},
	{"serviceRef", "Service"},
	{"claimRef", "PersistentVolumeClaim"},
	{"trustedCARef", "ConfigMap"},
	{"parentRef", "gateway.networking.k8s.io:v1:Gateway"},
	{"novaRef", "nova.asterism.dev:v1alpha1:Nova"},
	{"superconductorRef", "nova.asterism.dev:v1alpha1:NovaConductor"},
}

// oneLineLength is the greatest maxLength of a field that has one line.
const oneLineLength = 1024

// described returns the description of a kind for the console, made from its schema: the
// names, texts and types of the fields are those of `kubectl explain`.
func described(crd *apiextensionsv1.CustomResourceDefinition) (v1alpha1.CRDDescription, error) {
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	described := v1alpha1.CRDDescription{
		Name: crd.Name, Kind: crd.Spec.Names.Kind, Version: version.Name,
		DisplayName: words(crd.Spec.Names.Kind), Description: oneLine(schema.Description),
	}
	var err error
	if described.SpecDescriptors, err = descriptors("", source.Fields(schema.Properties["spec"]), input); err != nil {
		return described, fmt.Errorf("%s: spec.%w", crd.Name, err)
	}
	status := slices.DeleteFunc(source.Fields(schema.Properties["status"]), func(f source.Field) bool { return slices.Contains(internal, f.Name) })
	shown, err := descriptors("", status, display)
	if err != nil {
		return described, fmt.Errorf("%s: status.%w", crd.Name, err)
	}
	for _, descriptor := range shown {
		described.StatusDescriptors = append(described.StatusDescriptors, v1alpha1.StatusDescriptor(descriptor))
	}
	return described, nil
}

// descriptors describes fields and, of objects at the top, the fields within them. The path
// of a reference is the path of its name. The function types returns the types of a field
// that is no reference.
func descriptors(parent string, fields []source.Field, types func(source.Field) []string) ([]v1alpha1.SpecDescriptor, error) {
	var all []v1alpha1.SpecDescriptor
	for _, field := range fields {
		descriptor := v1alpha1.SpecDescriptor{
			Path: parent + field.Name, DisplayName: words(field.Name), Description: oneLine(field.Schema.Description), XDescriptors: types(field),
		}
		if strings.HasSuffix(field.Name, "Ref") {
			kind := kindOf(field.Name)
			if kind == "" {
				return nil, fmt.Errorf("%s%s: the kind of this reference is not known: add it to referenced", parent, field.Name)
			}
			descriptor.Path, descriptor.XDescriptors = descriptor.Path+".name", []string{consoleKubernetes + ":" + kind}
		}
		all = append(all, descriptor)
		if parent != "" || len(descriptor.XDescriptors) > 0 {
			continue
		}
		below, err := descriptors(field.Name+".", source.Fields(field.Schema), types)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

func kindOf(reference string) string {
	for _, known := range referenced {
		if strings.HasSuffix(reference, known.field) {
			return known.kind
		}
	}
	return ""
}

// display returns the types with which the console displays a field of a status.
func display(f source.Field) []string {
	if f.Name == "conditions" {
		return []string{consoleKubernetes + ".conditions"}
	}
	return nil
}

// input returns the types of the form field of a field of a spec. A text of several lines
// has none.
func input(f source.Field) (types []string) {
	switch {
	case f.Name == "replicas":
		return []string{consoleUI + "podCount"}
	case f.Name == "resources":
		return []string{consoleUI + "resourceRequirements"}
	case f.Schema.Type == "boolean":
		return []string{consoleUI + "booleanSwitch"}
	case f.Schema.Type == "integer":
		return []string{consoleUI + "number"}
	case len(f.Schema.Enum) > 0:
		for _, value := range f.Schema.Enum {
			types = append(types, consoleUI+"select:"+strings.Trim(string(value.Raw), `"`))
		}
		return types
	case f.Schema.Type == "string" && f.Schema.MaxLength != nil && *f.Schema.MaxLength <= oneLineLength:
		return []string{consoleUI + "text"}
	}
	return nil
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
