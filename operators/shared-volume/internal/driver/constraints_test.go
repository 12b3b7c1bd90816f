package driver

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// constraintsDefinition returns the folder with OpenShift's CustomResourceDefinition of
// SecurityContextConstraints, in the module of the Go type.
func constraintsDefinition() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return fmt.Sprintf("the module github.com/openshift/api is not found: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "security", "v1", "zz_generated.crd-manifests")
}

func imagesOf(object *unstructured.Unstructured) ([]any, error) {
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	var images []any
	for _, container := range containers {
		fields, ok := container.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%v is no container", container)
		}
		images = append(images, fields["image"])
	}
	return images, err
}
