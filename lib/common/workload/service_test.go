package workload_test

import (
	"strings"
	"testing"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
)

func TestDefaultImage(t *testing.T) {
	service := workload.Service{Project: workload.Project{Name: "thing"}}
	if _, err := service.Configuration(engine.Inputs{}); err == nil || engine.Reason(err) != engine.ReasonInvalid ||
		!strings.Contains(err.Error(), "set spec.containerImage, or RELATED_IMAGE_THING") {
		t.Errorf("no image: %v", err)
	}
	t.Setenv("RELATED_IMAGE_THING", "quay.example/default:1")
	if image := service.Image(); image != "quay.example/default:1" {
		t.Errorf("the default image is %q", image)
	}
	service.Spec.ContainerImage = "quay.example/stated:1"
	if image := service.Image(); image != "quay.example/stated:1" {
		t.Errorf("the image of the spec is %q", image)
	}
}
