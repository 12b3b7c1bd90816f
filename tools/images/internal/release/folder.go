package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// createFolder creates the folder of the files beside Output, so that it can be renamed.
func (r *release) createFolder(context.Context) error {
	if err := refuseOtherFolder(r.Output); err != nil {
		return err
	}
	parent, name := filepath.Split(r.Output)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // a release is public
		return err
	}
	var err error
	if r.folder, err = os.MkdirTemp(parent, name+"-"); err != nil {
		return err
	}
	if err := os.Chmod(r.folder, 0o755); err != nil { //nolint:gosec // a release is public
		return err
	}
	for _, name := range []string{sbomFolder, originFolder} {
		if err := os.Mkdir(filepath.Join(r.folder, name), 0o755); err != nil { //nolint:gosec // a release is public
			return err
		}
	}
	r.layout, err = layout.Write(filepath.Join(r.folder, layoutFolder), empty.Index)
	return err
}

// refuseOtherFolder keeps files of users, which replaceOutput would remove.
func refuseOtherFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ListFile }) {
		return fmt.Errorf("folder %s has files, and is no release because it lacks %s: delete the folder, or name another one", folder, ListFile)
	}
	return nil
}

// replaceOutput puts the complete release in place of an earlier one.
func (r *release) replaceOutput(context.Context) error {
	if err := os.RemoveAll(filepath.Join(r.folder, programsFolder)); err != nil { // the images have the programs
		return err
	}
	former := r.folder + ".former"
	if err := os.Rename(r.Output, former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(r.folder, r.Output); err != nil {
		return errors.Join(err, os.Rename(former, r.Output))
	}
	return os.RemoveAll(former)
}
