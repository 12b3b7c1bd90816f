// Package v1alpha1 holds the kinds of shared storage: SharedVolume, a claim on a
// writable file system that pods on any node can mount; SharedVolumePolicy, who
// may use which file system; and SharedVolumeDriver, the CSI driver that mounts
// them.
//
// +kubebuilder:object:generate=true
// +groupName=storage.asterism.dev
package v1alpha1
