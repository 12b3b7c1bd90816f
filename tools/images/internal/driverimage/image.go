// Package driverimage packs the EFS CSI driver and the stand-in for EFS, for a cluster on
// this machine.
package driverimage

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/images/internal/archive"
)

// Names of the images, which differ in the program that they start.
const (
	driverName    = "asterism.dev/demo/aws-efs-csi-driver"
	registrarName = "asterism.dev/demo/csi-node-driver-registrar"
	probeName     = "asterism.dev/demo/livenessprobe"
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

// epoch is the value of every time stamp, so that the same files give the same images.
var epoch = time.Unix(0, 0).UTC()

// Write packs the driver and the stand-in, both static, with this machine's own
// mount and umount, and writes three images of one layer to output.
func Write(ctx context.Context, tag, driver, standIn, output string) error {
	files, err := mountPrograms(ctx)
	if err != nil {
		return err
	}
	files = append(files, file{driverPath, driver}, file{standIns[0], standIn})
	content, err := pack(files)
	if err != nil {
		return err
	}
	layer, err := archive.LayerFromBytes(content)
	if err != nil {
		return err
	}
	images := map[string]archive.Image{}
	for name, path := range map[string]string{driverName: driverPath, registrarName: registrarPath, probeName: probePath} {
		images[name+":"+tag] = archive.Image{Config: configuration("/" + path), Layers: []v1.Layer{layer}}
	}
	return archive.WriteAll(output, images)
}

// configuration disables EC2's metadata service, which this machine lacks, so that the
// driver reads its instance from Kubernetes without delay.
func configuration(program string) v1.ConfigFile {
	return v1.ConfigFile{
		OS:           "linux",
		Architecture: runtime.GOARCH,
		Created:      v1.Time{Time: epoch},
		Config: v1.Config{
			Entrypoint: []string{program},
			Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "AWS_EC2_METADATA_DISABLED=true"},
			WorkingDir: "/",
		},
	}
}

// file is the name of a file in the image and the path of its content.
type file struct{ name, source string }

func pack(files []file) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	entry := func(header tar.Header, body []byte) error {
		header.Mode, header.ModTime, header.Format, header.Size = 0o755, epoch, tar.FormatPAX, int64(len(body))
		if err := writer.WriteHeader(&header); err != nil {
			return fmt.Errorf("pack %s: %w", header.Name, err)
		}
		_, err := writer.Write(body)
		return err
	}
	for _, f := range files {
		body, err := os.ReadFile(f.source)
		if err != nil {
			return nil, err
		}
		if err := entry(tar.Header{Typeflag: tar.TypeReg, Name: f.name}, body); err != nil {
			return nil, err
		}
	}
	for _, name := range standIns[1:] {
		if err := entry(tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: standIns[0]}, nil); err != nil {
			return nil, err
		}
	}
	if err := entry(tar.Header{Typeflag: tar.TypeDir, Name: staticFiles}, nil); err != nil {
		return nil, err
	}
	err := writer.Close() // writes the archive's end
	return content.Bytes(), err
}
