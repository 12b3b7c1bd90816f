// Package driverimage packs the EFS CSI driver and the stand-in for EFS, for a cluster on
// this machine.
package driverimage

import (
	"context"
	"os"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/internal/archive"
)

// Names of the images, which differ in the program that they start.
const (
	Driver    = "asterism.dev/demo/aws-efs-csi-driver"
	Registrar = "asterism.dev/demo/csi-node-driver-registrar"
	Probe     = "asterism.dev/demo/livenessprobe"
)

const (
	driverPath    = "usr/bin/aws-efs-csi-driver"
	registrarPath = "usr/bin/csi-node-driver-registrar"
	probePath     = "usr/bin/livenessprobe"
)

// standIns are the names of the stand-in program. mount(8) finds its helpers only in
// /sbin.
var standIns = []string{"sbin/mount.efs", "usr/bin/amazon-efs-mount-watchdog", registrarPath, probePath}

// staticFiles is a folder that the driver copies, and that must therefore exist.
const staticFiles = "etc/amazon/efs-static-files/"

// Write packs the driver and the stand-in, both static, with this machine's own
// mount and umount, and writes three images of one layer to output.
func Write(ctx context.Context, tag, driver, standIn, output string) error {
	files, err := mountPrograms(ctx)
	if err != nil {
		return err
	}
	for _, program := range []struct{ name, source string }{{driverPath, driver}, {standIns[0], standIn}} {
		file, err := fileOf(program.name, program.source)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	for _, name := range standIns[1:] {
		files = append(files, archive.File{Path: name, Mode: 0o755, Link: standIns[0]})
	}
	layer, err := archive.Layer(append(files, archive.File{Path: staticFiles, Mode: 0o755})...)
	if err != nil {
		return err
	}
	images := map[string]archive.Image{}
	for name, path := range map[string]string{Driver: driverPath, Registrar: registrarPath, Probe: probePath} {
		images[name+":"+tag] = archive.Image{Config: configuration("/" + path), Layers: []v1.Layer{layer}}
	}
	return archive.Write(output, images)
}

// configuration disables EC2's metadata service, which this machine lacks, so that the
// driver reads its instance from Kubernetes without delay.
func configuration(program string) v1.ConfigFile {
	return v1.ConfigFile{
		OS:           "linux",
		Architecture: runtime.GOARCH,
		Created:      v1.Time{Time: archive.Epoch},
		Config: v1.Config{
			Entrypoint: []string{program},
			Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "AWS_EC2_METADATA_DISABLED=true"},
			WorkingDir: "/",
		},
	}
}

// fileOf returns an executable file of the image with the content of a file.
func fileOf(name, source string) (archive.File, error) {
	content, err := os.ReadFile(source)
	return archive.File{Path: name, Mode: 0o755, Content: content}, err
}
