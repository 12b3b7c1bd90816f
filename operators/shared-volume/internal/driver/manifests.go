package driver

import (
	"embed"
	"fmt"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// manifests are the manifests of aws-efs-csi-driver v3.4.1 without the controller, which
// only dynamic provisioning needs.
//
//go:embed manifests/*.yaml
var manifests embed.FS

// Images of the driver's pods, each for amd64 and arm64.
type Images struct {
	Driver        string
	Registrar     string
	LivenessProbe string
}

// ImagesFromEnvironment returns the pinned images, or the images that the environment
// names, for example of a registry inside an isolated network.
func ImagesFromEnvironment() Images {
	return Images{
		Driver:        environment("RELATED_IMAGE_EFS_CSI_DRIVER", "public.ecr.aws/efs-csi-driver/amazon/aws-efs-csi-driver:v3.4.1"),
		Registrar:     environment("RELATED_IMAGE_NODE_DRIVER_REGISTRAR", "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0"),
		LivenessProbe: environment("RELATED_IMAGE_LIVENESS_PROBE", "registry.k8s.io/sig-storage/livenessprobe:v2.19.0"),
	}
}

func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func manifest(name string) (*unstructured.Unstructured, error) {
	content, err := manifests.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &object.Object); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	return object, nil
}

// identity of an object, which is immutable.
type identity struct{ kind, namespace, name string }

func identify(object client.Object) identity {
	return identity{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}

// fixed returns the identities of all objects that the operator can install.
var fixed = sync.OnceValue(func() map[identity]bool {
	all := map[identity]bool{}
	for _, name := range append([]string{constraints, "daemonset"}, fixtures...) {
		object, err := manifest(name)
		if err != nil {
			panic(err) //nolint:forbidigo // manifests are part of the program
		}
		all[identify(object)] = true
	}
	return all
})

// daemonSet returns the DaemonSet with the images, the node selector and the tolerations.
func daemonSet(spec storagev1.SharedVolumeDriverSpec, images Images, openShift bool) (*unstructured.Unstructured, error) {
	object, err := manifest("daemonset")
	if err != nil {
		return nil, err
	}
	pod, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil {
		return nil, err
	}
	pod["nodeSelector"] = nodeSelector(spec.NodeSelector, openShift)
	if pod["tolerations"], err = tolerations(spec); err != nil {
		return nil, err
	}
	containers, _ := pod["containers"].([]any)
	for i, image := range []string{images.Driver, images.Registrar, images.LivenessProbe} {
		container, ok := containers[i].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("manifest daemonset: container %d is no mapping", i)
		}
		container["image"] = image
	}
	return object, unstructured.SetNestedMap(object.Object, pod, "spec", "template", "spec")
}

func nodeSelector(wanted map[string]string, openShift bool) map[string]any {
	if len(wanted) == 0 {
		wanted = map[string]string{"kubernetes.io/os": "linux"}
		if openShift {
			wanted["node-role.kubernetes.io/worker"] = ""
		}
	}
	selector := map[string]any{}
	for label, value := range wanted {
		selector[label] = value
	}
	return selector
}

// tolerations are by default for all taints, because a volume can be needed on every node.
func tolerations(spec storagev1.SharedVolumeDriverSpec) (any, error) {
	if len(spec.Tolerations) == 0 {
		return []any{map[string]any{"operator": "Exists"}}, nil
	}
	content, err := yaml.Marshal(spec.Tolerations)
	if err != nil {
		return nil, err
	}
	var all []any
	return all, yaml.Unmarshal(content, &all)
}
