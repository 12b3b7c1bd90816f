// Package v1alpha1 contains the kinds of shared storage. A SharedVolume is a claim on a
// writable file system that pods on any node can mount. A SharedVolumePolicy grants
// namespaces the use of file systems. The SharedVolumeDriver is the CSI driver that mounts
// the file systems.
//
// +kubebuilder:object:generate=true
// +groupName=storage.asterism.dev
package v1alpha1
