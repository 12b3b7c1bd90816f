package volume

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// Handle returns the CSI volume handle of an access point: file system, empty path, access
// point. Every release of the driver understands this form. The form must not change,
// because the kubelet would regard another form as another volume.
func Handle(fileSystem storagev1.FileSystemID, accessPoint storagev1.AccessPointID) string {
	return string(fileSystem) + "::" + string(accessPoint)
}

// parseHandle returns the file system and access point of a volume handle. The driver accepts
// a type of file system before the ID since release 3.0.0, and writes it into the volumes that
// it provisions.
func parseHandle(handle string) (fileSystem, accessPoint string) {
	fields := append(strings.Split(handle, ":"), "", "", "")
	if fields[0] == "efs" || fields[0] == "s3files" {
		fields = fields[1:]
	}
	return fields[0], fields[2]
}

// accessPointOption is the mount option that older volumes have instead of an access point in
// their handle.
const accessPointOption = "accesspoint="

// Mounted returns the file system and access point that the driver mounts for a volume, ""
// for those that it does not mount. The volume may be of any owner.
func Mounted(volume *corev1.PersistentVolume) (fileSystem, accessPoint string) {
	csi := volume.Spec.CSI
	if csi == nil || csi.Driver != DriverName {
		return "", ""
	}
	fileSystem, accessPoint = parseHandle(csi.VolumeHandle)
	for option := range strings.SplitSeq(strings.ToLower(strings.Join(volume.Spec.MountOptions, ",")), ",") {
		if id, found := strings.CutPrefix(option, accessPointOption); found && accessPoint == "" {
			accessPoint = id
		}
	}
	return fileSystem, accessPoint
}
