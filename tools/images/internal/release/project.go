package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// license is the SPDX identifier of the file LICENSE.
const license = "Apache-2.0"

// project has the settings of config/packaging.yaml that images need.
type project struct {
	Version     string    `json:"version"`
	Created     time.Time `json:"created"`
	Registry    string    `json:"registry"`
	Provider    string    `json:"provider"`
	Maintainers []struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"maintainers"`
	Repository string `json:"repository"`

	// Revision is the commit of the source, empty if files differ from it.
	Revision  string     `json:"-"`
	Operators []operator `json:"-"`
}

// operator has the settings of operators/NAME/packaging.yaml that images need.
type operator struct {
	Name        string `json:"-"`
	DisplayName string `json:"displayName"`
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Images      []struct {
		Variable string `json:"variable"`
		Image    string `json:"image"`
	} `json:"images"`
}

// Package is the name of the operator's package and of its image.
func (o operator) Package() string { return o.Name + "-operator" }

func readProject(ctx context.Context, root string) (*project, error) {
	p := &project{}
	if err := readYAML(filepath.Join(root, "config", "packaging.yaml"), p); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "operators", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no operators: --root is the directory of the repository", root)
	}
	for _, file := range files {
		o := operator{Name: filepath.Base(filepath.Dir(file))}
		if err := readYAML(filepath.Join(filepath.Dir(file), "packaging.yaml"), &o); err != nil {
			return nil, err
		}
		p.Operators = append(p.Operators, o)
	}
	p.Revision = revision(ctx, root)
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

func readYAML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
