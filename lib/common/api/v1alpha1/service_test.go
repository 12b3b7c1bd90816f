package v1alpha1

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func limits(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

func TestAServiceReplacesTheDefaultsOfItsParent(t *testing.T) {
	two, three := int32(2), int32(3)
	defaults := ServiceDefaults{
		Replicas: &two, Resources: limits("1Gi"), CustomServiceConfig: "[DEFAULT]\ndebug = true\n",
		Pod: PodSettings{Labels: map[string]string{"team": "a", "tier": "b"}, NodeSelector: map[string]string{"zone": "1"}},
	}
	for name, c := range map[string]struct {
		own  ServiceTemplate
		want ServiceSpec
	}{
		"nothing": {ServiceTemplate{}, ServiceSpec{ContainerImage: "image", Replicas: &two, ServiceSettings: ServiceSettings{
			Resources: limits("1Gi"), CustomServiceConfig: "[DEFAULT]\ndebug = true\n",
			Pod: PodSettings{Labels: map[string]string{"team": "a", "tier": "b"}, NodeSelector: map[string]string{"zone": "1"}},
		}}},
		"all": {
			ServiceTemplate{ContainerImage: "own", Replicas: &three, ServiceSettings: ServiceSettings{
				Resources: limits("2Gi"), CustomServiceConfig: "# why\n[DEFAULT]\ndebug = false\n",
				Pod: PodSettings{Labels: map[string]string{"tier": "c"}, NodeSelector: map[string]string{}},
			}},
			ServiceSpec{ContainerImage: "own", Replicas: &three, ServiceSettings: ServiceSettings{
				Resources: limits("2Gi"), CustomServiceConfig: "[DEFAULT]\ndebug = true\n\n# why\n[DEFAULT]\ndebug = false\n",
				Pod: PodSettings{Labels: map[string]string{"team": "a", "tier": "c"}, NodeSelector: map[string]string{}},
			}},
		},
		"an option without a section, which is refused alone": {
			ServiceTemplate{ServiceSettings: ServiceSettings{CustomServiceConfig: "; why\ndebug = false\n"}},
			ServiceSpec{ContainerImage: "image", Replicas: &two, ServiceSettings: ServiceSettings{
				Resources: limits("1Gi"), CustomServiceConfig: "; why\ndebug = false\n",
				Pod: PodSettings{Labels: map[string]string{"team": "a", "tier": "b"}, NodeSelector: map[string]string{"zone": "1"}},
			}},
		},
	} {
		own, parent := *c.own.DeepCopy(), *defaults.DeepCopy()
		if got := c.own.Spec("image", defaults); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got\n%+v, want\n%+v", name, got, c.want)
		}
		if !reflect.DeepEqual(c.own, own) || !reflect.DeepEqual(defaults, parent) {
			t.Errorf("%s: an argument was changed", name)
		}
	}
}
