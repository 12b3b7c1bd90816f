package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"asterism.dev/tools/internal/source"
)

// templates are the files that are written as a whole.
//
//go:embed templates
var templates embed.FS

var parsed = template.Must(template.New("").Funcs(template.FuncMap{
	"identifier": func(name string) string { return strings.ReplaceAll(name, "-", "") },
	"clusterScoped": func(operator *source.Operator) (kinds []string) {
		for _, crd := range operator.CRDs {
			if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
				kinds = append(kinds, crd.Spec.Names.Kind)
			}
		}
		return kinds
	},
}).ParseFS(templates, "templates/*"))

// installations are the kustomizations of operators by the namespace of the operators.
var installations = map[string]string{
	"asterism-system":  "config/control-plane/kustomization.yaml",
	"asterism-storage": "config/shared-volume/kustomization.yaml",
}

// writeLists writes what lists the operators. Lines of other authors in the same files remain.
func writeLists(root string) error {
	project, err := source.Read(root)
	if err != nil {
		return err
	}
	if err := writeInstallations(project); err != nil {
		return err
	}
	for file, name := range map[string]string{
		"config/namespace/rolebindings.yaml":              "rolebindings.yaml",
		"cli/cluster/operators.go":                        "operators.go.tmpl",
		"cli/internal/meaning/generate/operators_test.go": "operators_test.go.tmpl",
	} {
		var content bytes.Buffer
		if err := parsed.ExecuteTemplate(&content, name, project); err != nil {
			return err
		}
		text := content.Bytes()
		if strings.HasSuffix(file, ".go") {
			if text, err = format.Source(text); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		if err := write(project.Path(file), text); err != nil {
			return err
		}
	}
	return writeModules(project)
}

// writeInstallations puts the operators at the end of the resources of each kustomization.
func writeInstallations(project *source.Project) error {
	for _, operator := range project.Operators {
		if installations[operator.Namespace] == "" {
			return fmt.Errorf("operators/%s/packaging.yaml: no kustomization in config installs operators in the namespace %q", operator.Name, operator.Namespace)
		}
	}
	for namespace, file := range installations {
		content, err := os.ReadFile(project.Path(file))
		if err != nil {
			return err
		}
		const prefix = "- ../../operators/"
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"), func(line string) bool { return strings.HasPrefix(line, prefix) })
		for _, operator := range project.Operators {
			if operator.Namespace == namespace {
				lines = append(lines, prefix+operator.Name+"/config")
			}
		}
		if err := write(project.Path(file), []byte(strings.Join(lines, "\n")+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// write leaves a file alone that has the content already, so that make and Go build nothing anew.
func write(path string, content []byte) error {
	if existing, err := os.ReadFile(path); err == nil && bytes.Equal(existing, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the repository is public
		return err
	}
	return os.WriteFile(path, content, 0o644) //nolint:gosec // the repository is public
}
