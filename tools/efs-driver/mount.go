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

// fileSystems is a folder of the node, so that data outlive the driver's pod. It is
// removed with the cluster.
const fileSystems = "/var/lib/kubelet/plugins/efs.csi.aws.com/file-systems"

var (
	fileSystemID  = regexp.MustCompile(`^fs-[0-9a-f]{8,40}$`)
	accessPointID = regexp.MustCompile(`^fsap-[0-9a-f]{8,40}$`)
)

// request contains the arguments that mount(8) passes to its helper.
type request struct {
	fileSystem  string
	accessPoint string
	target      string
	readOnly    bool
}

// mountEFS mounts the access point's folder on the target.
func mountEFS(_ context.Context, args []string) error {
	r, err := parseRequest(args)
	if err != nil {
		return err
	}
	return r.mount(fileSystems)
}

// parseRequest parses the arguments SOURCE TARGET [-sfnv] [-o OPTIONS].
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
		return r, fmt.Errorf("path %q: leave it out, as the access point defines the path", path)
	case !slices.Contains(options, "tls"):
		return r, errors.New("an access point can only be mounted with option tls")
	}
	return r, nil
}

func (r request) mount(root string) error {
	source := filepath.Join(root, r.fileSystem, r.accessPoint)
	if err := os.MkdirAll(source, 0o755); err != nil {
		return err
	}
	// An access point of EFS may set a user. This stand-in lets every user write.
	if err := os.Chmod(source, 0o777); err != nil {
		return err
	}
	return r.attach(source)
}

// attach sets all attributes of the mount before moving it to the target. At that moment
// the mount propagates to the node as a copy, which later changes would not affect.
func (r request) attach(source string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clone the mount of %s: %w", source, err)
	}
	defer func() { _ = unix.Close(tree) }()
	if r.readOnly {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make the mount of %s read-only: %w", source, err)
		}
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, r.target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, r.target, err)
	}
	return nil
}
