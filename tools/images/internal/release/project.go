package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"asterism.dev/tools/internal/source"
)

// license is the SPDX identifier of the file LICENSE.
const license = "Apache-2.0"

// project is the source of a release.
type project struct {
	*source.Project

	// Revision is the commit of the source, empty if files differ from it.
	Revision string
}

func readProject(ctx context.Context, root string) (*project, error) {
	read, err := source.Read(root)
	if err != nil {
		return nil, fmt.Errorf("%w: --root is the directory of the repository", err)
	}
	p := &project{Project: read, Revision: revision(ctx, root)}
	return p, p.readDate()
}

// readDate replaces the date of the version with SOURCE_DATE_EPOCH, the common variable of
// reproducible builds.
func (p *project) readDate() error {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %w", err)
	}
	p.Created = time.Unix(seconds, 0).UTC()
	return nil
}

// revision returns an empty string if a file differs from the commit, or if there is no
// commit, as in an unpacked archive.
func revision(ctx context.Context, root string) string {
	changes, err := exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain").Output()
	if err != nil || len(changes) > 0 {
		return ""
	}
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(commit))
}

func (p *project) maintainer() string {
	if len(p.Maintainers) == 0 {
		return p.Provider
	}
	return fmt.Sprintf("%s <%s>", p.Maintainers[0].Name, p.Maintainers[0].Email)
}
