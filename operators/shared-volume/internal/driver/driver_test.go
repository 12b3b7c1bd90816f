package driver

import (
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/filesystem"
	"asterism.dev/operators/shared-volume/internal/volume"
)

var subject = enginetest.Subject[*storagev1.SharedVolumeDriver]{
	Service:     New(Images{Driver: "driver:1", Registrar: "registrar:1", LivenessProbe: "probe:1"}),
	AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme, securityv1.Install},
	Conditions:  storagev1.SharedVolumeDriverConditions,
	CRDs:        []string{constraintsDefinition()},
}

func TestGolden(t *testing.T)  { subject.Golden(t) }
func TestConform(t *testing.T) { subject.Conform(t) }

// TestRole: the operator's role has the rights that the stages use, the rights that the
// operator grants to the driver's account, and the creation of the SharedVolumeDriver, and
// no other right.
func TestRole(t *testing.T) {
	enginetest.Role(t, "../../config/rbac/role.yaml", subject, volumes, policies, fileSystems, otherRights{})
}

var volumes = enginetest.Subject[*storagev1.SharedVolume]{
	Service:     volume.Service,
	AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
	Conditions:  storagev1.SharedVolumeConditions,
	Testdata:    "../volume/testdata",
}

var policies = enginetest.Subject[*storagev1.SharedVolumePolicy]{
	Service:     volume.Grants,
	AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
	Conditions:  storagev1.SharedVolumePolicyConditions,
	Testdata:    "../volume/testdata-policy",
}

var fileSystems = enginetest.Subject[*storagev1.SharedFileSystem]{
	Service:     filesystem.Service,
	AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
	Conditions:  storagev1.SharedFileSystemConditions,
	Testdata:    "../filesystem/testdata",
}

type otherRights struct{}

func (otherRights) Used(testing.TB) enginetest.Rights {
	used := enginetest.Rights{
		{Verb: "create", Group: "storage.asterism.dev", Resource: "sharedvolumedrivers"}: true,
	}
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		used[enginetest.Right{Verb: verb, Resource: "nodes"}] = true
	}
	return used
}

func TestImagesCanBeReplaced(t *testing.T) {
	t.Setenv("RELATED_IMAGE_EFS_CSI_DRIVER", "mirror.example/driver@sha256:0")
	images := ImagesFromEnvironment()
	if images.Driver != "mirror.example/driver@sha256:0" {
		t.Errorf("the driver's image is %s", images.Driver)
	}
	object, err := daemonSet(storagev1.SharedVolumeDriverSpec{}, images, false)
	if err != nil {
		t.Fatal(err)
	}
	used, err := imagesOf(object)
	if err != nil {
		t.Fatal(err)
	}
	for i, image := range []string{images.Driver, images.Registrar, images.LivenessProbe} {
		if used[i] != image {
			t.Errorf("container %d runs %s, want %s", i, used[i], image)
		}
	}
}
