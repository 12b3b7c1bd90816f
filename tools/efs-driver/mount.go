package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fileSystems is a folder of the node, so that data outlive the driver's pod. It
// goes with the cluster.
const fileSystems = "/var/lib/kubelet/plugins/efs.csi.aws.com/file-systems"

var (
	fileSystemID  = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)
	accessPointID = regexp.MustCompile(`^fsap-[0-9a-f]{8,40}$`)
)

// request is what mount(8) passes on to its helper.
type request struct {
	fileSystem  string
	accessPoint string
	target      string
	readOnly    bool
}

// mountEFS shows the access point's folder at the target.
func mountEFS(_ context.Context, args []string) error {
	r, err := parseRequest(args)
	if err != nil {
		return err
	}
	return r.mount(fileSystems)
}

// parseRequest reads: SOURCE TARGET [-sfnv] [-o OPTIONS].
func parseRequest(args []string) (request, error) {
	var plain, options []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-o" && i+1 < len(args):
			i++
			options = strings.Split(args[i], ",")
		case !strings.HasPrefix(args[i], "-"):
			plain = append(plain, args[i])
		}
	}
	if len(plain) != 2 {
		return request{}, errors.New("usage: mount.efs FILESYSTEM[:/] TARGET -o accesspoint=ID,tls[,ro]")
	}
	source, path, _ := strings.Cut(plain[0], ":")
	r := request{fileSystem: source, target: plain[1], readOnly: slices.Contains(options, "ro")}
	for _, option := range options {
		if value, found := strings.CutPrefix(option, "accesspoint="); found {
			r.accessPoint = value
		}
	}
	switch {
	case !fileSystemID.MatchString(r.fileSystem):
		return r, fmt.Errorf("%q is not the ID of a file system", r.fileSystem)
	case !accessPointID.MatchString(r.accessPoint):
		return r, fmt.Errorf("accesspoint=%q is not the ID of an access point", r.accessPoint)
	case path != "" && path != "/":
		return r, fmt.Errorf("path %q: an access point has one of its own", path)
	case !slices.Contains(options, "tls"):
		return r, errors.New("an access point can be mounted with tls only")
	}
	return r, nil
}

func (r request) mount(root string) error {
	source := filepath.Join(root, r.fileSystem, r.accessPoint)
	if err := os.MkdirAll(source, 0o755); err != nil {
		return err
	}
	// An access point has a user of its own; this one lets every user write.
	if err := os.Chmod(source, 0o777); err != nil {
		return err
	}
	if err := unix.Mount(source, r.target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, r.target, err)
	}
	if !r.readOnly {
		return nil
	}
	if err := unix.Mount("", r.target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", r.target, err), unix.Unmount(r.target, 0))
	}
	return nil
}
