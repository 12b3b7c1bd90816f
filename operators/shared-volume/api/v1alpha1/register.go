package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "storage.asterism.dev", Version: "v1alpha1"}
	// SchemeGroupVersion is GroupVersion under the name that generators expect.
	SchemeGroupVersion = GroupVersion

	// AddToScheme registers the kinds in this package.
	AddToScheme = commonv1.Registration(GroupVersion,
		&SharedVolume{}, &SharedVolumeList{},
		&SharedVolumePolicy{}, &SharedVolumePolicyList{},
		&SharedVolumeDriver{}, &SharedVolumeDriverList{},
		&SharedFileSystem{}, &SharedFileSystemList{},
	)
)
