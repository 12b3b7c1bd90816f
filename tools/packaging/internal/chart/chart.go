// Package chart makes the Helm charts: one of each operator, the chart of all operators, and
// one of each service, which renders the resource of the service.
package chart

import (
	"embed"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
)

// Umbrella is the name of the chart of all operators.
const Umbrella = "asterism"

// files are the parts of charts that no object has: named templates, notes, README.
//
//go:embed files
var files embed.FS

// Files returns the files of all charts by their path in the folder charts.
func Files(project *source.Project, images source.Images, icon []byte) (output.Files, error) {
	all := output.Files{}
	namespaceRights, err := readNamespaceRights(project)
	if err != nil {
		return nil, err
	}
	for _, operator := range project.Operators {
		chart, err := operatorChart(project, operator, images, namespaceRights, icon)
		if err != nil {
			return nil, fmt.Errorf("chart of operator %s: %w", operator.Name, err)
		}
		all.Include(operator.Package(), chart)
		if operator.Service == nil {
			continue
		}
		if chart, err = serviceChart(project, operator, icon); err != nil {
			return nil, fmt.Errorf("chart %s: %w", operator.Service.Chart, err)
		}
		all.Include(operator.Service.Chart, chart)
	}
	chart, err := umbrellaChart(project, icon)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", Umbrella, err)
	}
	all.Include(Umbrella, chart)
	return all, nil
}

// metadata is what the Chart.yaml files have in common.
func metadata(project *source.Project, icon []byte, name, description string) *helm.Metadata {
	m := &helm.Metadata{
		APIVersion: helm.APIVersionV2, Name: name, Description: description, Type: "application",
		Version: project.Version, AppVersion: project.Version,
		KubeVersion: ">=" + project.MinKubeVersion + "-0", // -0 admits versions such as 1.34.1-gke.10
		Keywords:    project.Keywords, Sources: []string{project.Repository},
		Icon: "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(icon),
		Annotations: map[string]string{
			"artifacthub.io/license":    "Apache-2.0",
			"artifacthub.io/prerelease": fmt.Sprint(strings.HasPrefix(project.Version, "0.")),
		},
	}
	if len(project.Links) > 0 {
		m.Home = project.Links[0].URL
		links, _ := yaml.Marshal(project.Links)
		m.Annotations["artifacthub.io/links"] = string(links)
	}
	for _, maintainer := range project.Maintainers {
		m.Maintainers = append(m.Maintainers, &helm.Maintainer{Name: maintainer.Name, Email: maintainer.Email})
	}
	return m
}

// content is everything of a chart besides its templates.
type content struct {
	metadata    *helm.Metadata
	values      []value
	definitions schema
	// texts are files of the chart by their names in the folder files.
	texts map[string]string
	// words replace words in the texts.
	words []string
}

// files returns the files of the chart.
func (c *content) files() (output.Files, error) {
	made := output.Files{}
	if err := made.Add("Chart.yaml", c.metadata); err != nil {
		return nil, err
	}
	var err error
	if made["values.yaml"], err = encodeValues(c.values); err != nil {
		return nil, err
	}
	if made["values.schema.json"], err = encodeSchema("Values of the chart "+c.metadata.Name, c.values, c.definitions); err != nil {
		return nil, err
	}
	rows, err := table(c.values, "")
	if err != nil {
		return nil, err
	}
	words := append([]string{"@CHART@", c.metadata.Name, "@DESCRIPTION@", c.metadata.Description, "@VALUES@\n", rows}, c.words...)
	for target, name := range c.texts {
		text, err := files.ReadFile(filepath.Join("files", name))
		if err != nil {
			return nil, err
		}
		made[target] = []byte(strings.NewReplacer(words...).Replace(string(text)))
	}
	return made, nil
}
