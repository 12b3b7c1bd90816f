package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHandlesAreReadAsTheDriverReadsThem: these are the examples of the driver, and what it
// writes into the volumes that it provisions.
func TestHandlesAreReadAsTheDriverReadsThem(t *testing.T) {
	for handle, want := range map[string][2]string{
		"fs-abcd1234":                        {"fs-abcd1234", ""},
		"fs-abcd1234:":                       {"fs-abcd1234", ""},
		"fs-abcd1234::":                      {"fs-abcd1234", ""},
		"fs-abcd1234:/path":                  {"fs-abcd1234", ""},
		"fs-abcd1234::fsap-12345678":         {"fs-abcd1234", "fsap-12345678"},
		"fs-abcd1234:/path:fsap-12345678":    {"fs-abcd1234", "fsap-12345678"},
		"efs:fs-abcd1234":                    {"fs-abcd1234", ""},
		"efs:fs-abcd1234:::":                 {"fs-abcd1234", ""},
		"efs:fs-abcd1234:/path":              {"fs-abcd1234", ""},
		"efs:fs-abcd1234::fsap-12345678":     {"fs-abcd1234", "fsap-12345678"},
		"s3files:fs-abcd1234:/a:fsap-123456": {"fs-abcd1234", "fsap-123456"},
		"":                                   {"", ""},
		"efs":                                {"", ""},
	} {
		if fileSystem, accessPoint := parseHandle(handle); [2]string{fileSystem, accessPoint} != want {
			t.Errorf("%q has the file system %q and access point %q, want %q", handle, fileSystem, accessPoint, want)
		}
	}
}

func TestMounted(t *testing.T) {
	for name, c := range map[string]struct {
		driver, handle string
		options        []string
		want           [2]string
	}{
		"handle":                  {DriverName, "efs:fs-1::fsap-2", nil, [2]string{"fs-1", "fsap-2"}},
		"mount option":            {DriverName, "fs-1", []string{"tls", "accesspoint=fsap-2"}, [2]string{"fs-1", "fsap-2"}},
		"mount options in a list": {DriverName, "fs-1", []string{"tls,AccessPoint=fsap-2"}, [2]string{"fs-1", "fsap-2"}},
		"another driver":          {"other", "fs-1::fsap-2", nil, [2]string{}},
		"no driver":               {"", "", nil, [2]string{}},
	} {
		volume := &corev1.PersistentVolume{}
		volume.Spec.MountOptions = c.options
		if c.driver != "" {
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: c.driver, VolumeHandle: c.handle}
		}
		if fileSystem, accessPoint := Mounted(volume); [2]string{fileSystem, accessPoint} != c.want {
			t.Errorf("%s: file system %q and access point %q, want %q", name, fileSystem, accessPoint, c.want)
		}
	}
}
