package driver

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestImagesAreThoseOfThePackages: the packages name the images that the operator starts
// without a variable.
func TestImagesAreThoseOfThePackages(t *testing.T) {
	content, err := os.ReadFile("../../packaging.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var packaging struct {
		Images []struct{ Variable, Image string } `json:"images"`
	}
	if err := yaml.Unmarshal(content, &packaging); err != nil {
		t.Fatal(err)
	}
	packaged := map[string]string{}
	for _, image := range packaging.Images {
		packaged[image.Variable] = image.Image
		t.Setenv(image.Variable, "")
	}
	images := ImagesFromEnvironment()
	for variable, image := range map[string]string{
		"RELATED_IMAGE_EFS_CSI_DRIVER":        images.Driver,
		"RELATED_IMAGE_NODE_DRIVER_REGISTRAR": images.Registrar,
		"RELATED_IMAGE_LIVENESS_PROBE":        images.LivenessProbe,
	} {
		if packaged[variable] != image {
			t.Errorf("packaging.yaml has %q in %s, and the operator starts %q", packaged[variable], variable, image)
		}
		delete(packaged, variable)
	}
	if len(packaged) > 0 {
		t.Errorf("the operator does not read %v", packaged)
	}
}
