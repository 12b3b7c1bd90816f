// Package source reads what images and packages of the operators are made from: the manifests
// in config and the packaging.yaml files.
package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

// Project is config/packaging.yaml: the settings of all packages.
type Project struct {
	// Version of every operator, without "v", for example 0.2.0.
	Version string `json:"version"`
	// Created is the date of the version.
	Created time.Time `json:"created"`
	// Channel is the channel of the catalog, for example candidate-v0.
	Channel string `json:"channel"`
	// Registry is the host and path of the published images, for example
	// quay.io/asterism.
	Registry string `json:"registry"`
	// MinKubeVersion is the oldest supported Kubernetes, for example 1.34.0.
	MinKubeVersion string `json:"minKubeVersion"`
	// MinOpenShiftVersion is the OpenShift with that Kubernetes, for example v4.21.
	MinOpenShiftVersion string `json:"minOpenShiftVersion"`
	// Provider, Maintainers, Links and Keywords are shown in catalogs.
	Provider    string       `json:"provider"`
	Maintainers []Maintainer `json:"maintainers"`
	Links       []Link       `json:"links"`
	Keywords    []string     `json:"keywords"`
	// Repository and Support are addresses for annotations of bundles and charts.
	Repository string `json:"repository"`
	Support    string `json:"support"`

	Operators []*Operator `json:"-"`

	root string
}

// Maintainer of the packages.
type Maintainer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Link to a web page about the project.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// ProjectFile is the path of the Project in the repository.
const ProjectFile = "config/packaging.yaml"

// ReadSettings reads the Project without its operators.
func ReadSettings(root string) (*Project, error) {
	project := &Project{root: root}
	return project, ReadYAML(filepath.Join(root, ProjectFile), project)
}

// Read reads the Project and every operator of the repository with this root.
func Read(root string) (*Project, error) {
	project, err := ReadSettings(root)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "operators", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		operator, err := project.readOperator(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		project.Operators = append(project.Operators, operator)
	}
	return project, project.check()
}

// check refuses dependencies on unknown packages.
func (p *Project) check() error {
	for _, operator := range p.Operators {
		for _, required := range operator.Requires {
			if p.Operator(required) == nil {
				return fmt.Errorf("operators/%s/packaging.yaml: requires names %q, which is no operator", operator.Name, required)
			}
		}
	}
	return nil
}

// Operator returns the operator of this name, nil if the project has none.
func (p *Project) Operator(name string) *Operator {
	i := slices.IndexFunc(p.Operators, func(o *Operator) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return p.Operators[i]
}

// Path returns the path of a file in the repository.
func (p *Project) Path(parts ...string) string {
	return filepath.Join(append([]string{p.root}, parts...)...)
}

// VersionRange is the range of versions of a required package: this minor version.
func (p *Project) VersionRange() (string, error) {
	version, err := semver.Parse(p.Version)
	if err != nil {
		return "", fmt.Errorf("%s: version %q: %w", ProjectFile, p.Version, err)
	}
	return fmt.Sprintf(">=%d.%d.0 <%d.%d.0-0", version.Major, version.Minor, version.Major, version.Minor+1), nil
}

// ReadYAML reads a file of YAML, and refuses fields that into lacks.
func ReadYAML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
