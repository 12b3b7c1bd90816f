// Package install makes the manifests for an installation with kubectl alone.
package install

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/bundle"
)

// Manifests are the kustomizations of a release's manifests, by the names of the files.
var Manifests = map[string]string{
	"install.yaml":       "config/control-plane",
	"shared-volume.yaml": "config/shared-volume",
	"namespace.yaml":     "config/namespace",
	runOnHost:            "config/run-on-host",
}

// runOnHost has its own policies: they stay when the operators are removed, because the namespaces
// that they limit remain too.
const runOnHost = "run-on-host.yaml"

// policyKinds are the kinds that a bundle cannot contain.
var policyKinds = []string{"NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// Files returns the manifests with the images of a version, and the policies for an
// installation with OLM.
func Files(project *source.Project, images source.Images) (output.Files, error) {
	files := output.Files{}
	var policies []any
	for _, file := range slices.Sorted(maps.Keys(Manifests)) {
		folder := Manifests[file]
		objects, err := source.Render(project.Path(folder))
		if err != nil {
			return nil, err
		}
		documents := make([]any, 0, len(objects))
		for _, object := range objects {
			if err := replace(project, object, images); err != nil {
				return nil, fmt.Errorf("%s: %w", folder, err)
			}
			documents = append(documents, object.Object)
			if file != runOnHost && slices.Contains(policyKinds, object.GetKind()) {
				policies = append(policies, object.Object)
			}
		}
		if err := files.Add(file, documents...); err != nil {
			return nil, err
		}
	}
	return files, files.Add("policies.yaml", policies...)
}

// replace gives an operator's Deployment the images of the version.
func replace(project *source.Project, object *unstructured.Unstructured, images source.Images) error {
	if object.GetKind() != "Deployment" {
		return nil
	}
	for _, operator := range project.Operators {
		if operator.Deployment.Name != object.GetName() {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return err
		}
		bundle.SetImages(deployment, operator, images)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
		delete(content, "status")
		object.Object = content
		return err
	}
	return fmt.Errorf("no operator has the Deployment %s", object.GetName())
}
