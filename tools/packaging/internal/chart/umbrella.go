package chart

import (
	"fmt"

	helm "helm.sh/helm/v4/pkg/chart/v2"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
)

// umbrellaChart returns the files of the chart that installs all operators, as the package of
// meta does with OLM.
func umbrellaChart(project *source.Project, icon []byte) (output.Files, error) {
	chart := &content{
		metadata: metadata(project, icon, Umbrella, "Installs the operators of an OpenStack Nova control plane and, if wanted, of shared volumes."),
		texts:    map[string]string{"templates/NOTES.txt": "umbrella-notes.txt", "README.md": "umbrella-readme.md.tpl"},
	}
	pod, definitions, err := podSchemas(project)
	if err != nil {
		return nil, err
	}
	chart.definitions = definitions
	enabled := value{key: "operators", comment: "The operators that are installed."}
	var own []value
	kinds := "{{- $kinds := list }}\n"
	for _, operator := range project.Operators {
		comment := "Install " + operator.Package() + "."
		if operator.ClusterWide {
			comment += " The operator has more rights than the others: prefer a release of its own chart in a namespace of its own."
		}
		enabled.group = append(enabled.group, value{key: operator.Name, comment: comment, defaultValue: !operator.ClusterWide, schema: flag})
		own = append(own, value{key: operator.Package(), comment: "Values of the chart " + operator.Package() + ".", defaultValue: schema{}, schema: schema{typ: object}})
		kinds += fmt.Sprintf("{{- if index .Values.operators %q }}{{ $kinds = append $kinds %q }}{{ end }}\n", operator.Name, resources(operator))
		chart.metadata.Dependencies = append(chart.metadata.Dependencies, &helm.Dependency{
			Name: operator.Package(), Version: project.Version, Repository: "file://../" + operator.Package(), Condition: "operators." + operator.Name,
		})
	}
	chart.values = append([]value{globalValue(globalValues(pod)), enabled}, own...)
	chart.words = []string{"@KINDS@\n", kinds}
	made, err := chart.files()
	if err != nil {
		return nil, err
	}
	// `helm dependency build` writes the archives and the lock, which has the time.
	made[".gitignore"] = []byte("/charts/\n/Chart.lock\n")
	return made, nil
}
