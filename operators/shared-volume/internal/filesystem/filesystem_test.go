package filesystem

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

func TestSharedFileSystem(t *testing.T) {
	enginetest.Subject[*storagev1.SharedFileSystem]{
		Service:     Service,
		AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
		Conditions:  storagev1.SharedFileSystemConditions,
	}.Test(t)
}

// TestVolumesThatUseAFileSystem are all whose handle or NFS server has its ID.
func TestVolumesThatUseAFileSystem(t *testing.T) {
	csi := func(driver, handle, server string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, VolumeAttributes: map[string]string{"server": server}}}
	}
	nfs := func(server string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: "/"}}
	}
	for name, c := range map[string]struct {
		source corev1.PersistentVolumeSource
		uses   bool
	}{
		"handle":                    {csi("efs.csi.aws.com", "fs-abcd1234", ""), true},
		"handle with a path":        {csi("efs.csi.aws.com", "fs-abcd1234:/data", ""), true},
		"handle with a type":        {csi("efs.csi.aws.com", "efs:fs-abcd1234", ""), true},
		"provisioned by the driver": {csi("efs.csi.aws.com", "efs:fs-abcd1234::fsap-12345678", ""), true},
		"another file system":       {csi("efs.csi.aws.com", "efs:fs-abcd12345", ""), false},
		"another driver":            {csi("ebs.csi.aws.com", "fs-abcd1234", ""), false},
		"NFS":                       {nfs("fs-abcd1234.efs.eu-central-1.amazonaws.com"), true},
		"NFS in upper case":         {nfs("FS-ABCD1234.EFS.eu-central-1.amazonaws.com"), true},
		"NFS of a zone":             {nfs("eu-central-1a.fs-abcd1234.efs.eu-central-1.amazonaws.com"), true},
		"NFS of another":            {nfs("fs-abcd12345.efs.eu-central-1.amazonaws.com"), false},
		"driver for NFS":            {csi("nfs.csi.k8s.io", "any", "fs-abcd1234.efs.eu-central-1.amazonaws.com"), true},
		"neither":                   {corev1.PersistentVolumeSource{}, false},
	} {
		found := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: c.source}}
		if got := uses(found, "fs-abcd1234"); got != c.uses {
			t.Errorf("%s: uses the file system: %t", name, got)
		}
	}
}
