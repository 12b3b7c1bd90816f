package bundle

import (
	"encoding/json"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
)

// Files returns the files of an operator's bundle by their paths in the directory of the
// bundle.
func Files(project *source.Project, operator *source.Operator, images source.Images, icon []byte) (output.Files, error) {
	csv, err := clusterServiceVersion(project, operator, images, icon)
	if err != nil {
		return nil, err
	}
	manifests := map[string]any{operator.Package() + ".clusterserviceversion": csv}
	for _, crd := range operator.CRDs {
		manifests[crd.Spec.Group+"_"+crd.Spec.Names.Plural] = crd
	}
	for _, role := range operator.UserRoles {
		manifests[role.Name+"_clusterrole"] = role
	}
	files := output.Files{}
	for name, manifest := range manifests {
		if err := files.Add(path.Join("manifests", name+".yaml"), withoutStatus{manifest}); err != nil {
			return nil, err
		}
	}
	labels := labels(project, operator)
	if err := files.Add("metadata/annotations.yaml", map[string]any{"annotations": labels}); err != nil {
		return nil, err
	}
	if len(operator.Requires) > 0 {
		packages, err := dependencies(project, operator)
		if err != nil {
			return nil, err
		}
		if err := files.Add("metadata/dependencies.yaml", packages); err != nil {
			return nil, err
		}
	}
	return files, files.Add("tests/scorecard/config.yaml", scorecard(operator))
}

// labels are the annotations of a bundle, and the labels of its image.
func labels(project *source.Project, operator *source.Operator) map[string]string {
	const bundle = "operators.operatorframework.io.bundle."
	return map[string]string{
		bundle + "mediatype.v1":                            "registry+v1",
		bundle + "manifests.v1":                            "manifests/",
		bundle + "metadata.v1":                             "metadata/",
		bundle + "package.v1":                              operator.Package(),
		bundle + "channels.v1":                             project.Channel,
		bundle + "channel.default.v1":                      project.Channel,
		"com.redhat.openshift.versions":                    project.MinOpenShiftVersion,
		"operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
		"operators.operatorframework.io.test.config.v1":    "tests/scorecard/",
	}
}

// dependencies are the packages that OLM installs with this package.
func dependencies(project *source.Project, operator *source.Operator) (map[string]any, error) {
	versions, err := project.VersionRange()
	if err != nil {
		return nil, err
	}
	var all []any
	for _, required := range operator.Requires {
		all = append(all, map[string]any{
			"type":  "olm.package",
			"value": map[string]string{"packageName": project.Operator(required).Package(), "version": versions},
		})
	}
	return map[string]any{"dependencies": all}, nil
}

// scorecard lists the checks of operator-sdk's scorecard. One of them refuses a kind for
// which the operator creates no objects.
func scorecard(operator *source.Operator) map[string]any {
	tests := []any{
		scorecardTest("basic", "basic-check-spec"),
		scorecardTest("olm", "olm-bundle-validation"),
		scorecardTest("olm", "olm-crds-have-validation"),
		scorecardTest("olm", "olm-spec-descriptors"),
		scorecardTest("olm", "olm-status-descriptors"),
	}
	if !slices.ContainsFunc(operator.Kinds, func(kind source.Kind) bool { return len(kind.Creates) == 0 }) {
		tests = append(tests, scorecardTest("olm", "olm-crds-have-resources"))
	}
	return map[string]any{
		"apiVersion": "scorecard.operatorframework.io/v1alpha3", "kind": "Configuration",
		"metadata": map[string]any{"name": "config"},
		"stages":   []any{map[string]any{"parallel": true, "tests": tests}},
	}
}

func scorecardTest(suite, test string) map[string]any {
	return map[string]any{
		"image":      "quay.io/operator-framework/scorecard-test:v1.42.3",
		"entrypoint": []string{"scorecard-test", test},
		"labels":     map[string]string{"suite": suite, "test": test + "-test"},
	}
}

// withoutStatus is an object that is written without its status and empty fields, which
// only Kubernetes' types have.
type withoutStatus struct{ object any }

// MarshalJSON returns the object without its status.
func (w withoutStatus) MarshalJSON() ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return json.Marshal(content)
}
