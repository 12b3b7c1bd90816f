// Package plugin writes the archives of kubectl asterism, and the manifest with which krew
// installs them.
package plugin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/archive"
	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/source"
)

// Options of the archives.
type Options struct {
	// Root is the directory of the repository.
	Root string
	// Version without "v"; config/packaging.yaml has the default.
	Version string
	// Address is the URL of the folder from which users download the archives; the default
	// is releases/download/vVERSION of the repository.
	Address string
	// Output is the folder of the archives and of the manifest.
	Output string
	// Build builds the program for a platform, and returns its path. The default is the Go
	// toolchain.
	Build func(ctx context.Context, platform Platform) (string, error)
}

// Platform is a system for which the program is built.
type Platform struct{ OS, Arch string }

// Platforms are those of the archives.
var Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Names of files.
const (
	program  = "kubectl-asterism"
	programs = "bin"
	Manifest = "asterism.yaml" // krew takes the name of the plugin from the file
)

// manifest is a plugin of krew.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []download `json:"platforms"`
}

// download is the archive of one platform.
type download struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

// Write writes the archives and the manifest. The same commit, toolchain and options give the
// same files.
func Write(ctx context.Context, options Options) error {
	project, err := source.ReadSettings(options.Root)
	if err != nil {
		return err
	}
	options.Version = cmp.Or(strings.TrimPrefix(options.Version, "v"), project.Version)
	options.Address = cmp.Or(options.Address, project.Repository+"/releases/download/v"+options.Version)
	if options.Build == nil {
		options.Build = options.goBuild
		defer func() { _ = os.RemoveAll(filepath.Join(options.Output, programs)) }() // the archives have the programs
	}
	if err := os.MkdirAll(options.Output, 0o755); err != nil {
		return err
	}
	m := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "asterism"},
		Spec: spec{
			Version: "v" + options.Version, Homepage: project.Repository,
			ShortDescription: "Show and install Nova control planes",
			Description:      "Shows the state of Nova control planes of Asterism and the cause of a fault, the effective\nconfiguration of a service and the effect of a snippet, collects reports without secrets, and\ninstalls the operators.\n",
		},
	}
	for _, platform := range Platforms {
		d, err := options.archive(ctx, platform, project.Created)
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, d)
	}
	content, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return write(filepath.Join(options.Output, Manifest), content)
}

// archive writes the archive of a platform: the program and the license, which krew requires.
func (o Options) archive(ctx context.Context, platform Platform, created time.Time) (download, error) {
	binary, err := o.Build(ctx, platform)
	if err != nil {
		return download{}, err
	}
	files := []archive.File{{Path: program, Mode: 0o755}, {Path: "LICENSE", Mode: 0o644}}
	for i, path := range []string{binary, filepath.Join(o.Root, "LICENSE")} {
		if files[i].Content, err = os.ReadFile(path); err != nil {
			return download{}, err
		}
	}
	packed, err := archive.Tar(created, files...)
	if err != nil {
		return download{}, err
	}
	var content bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&content, gzip.BestCompression)
	if err != nil {
		return download{}, err
	}
	if _, err := zipped.Write(packed); err != nil {
		return download{}, err
	}
	if err := zipped.Close(); err != nil {
		return download{}, err
	}
	name := fmt.Sprintf("%s-%s-%s.tar.gz", program, platform.OS, platform.Arch)
	return download{
		Selector: map[string]map[string]string{"matchLabels": {"os": platform.OS, "arch": platform.Arch}},
		URI:      o.Address + "/" + name, SHA256: fmt.Sprintf("%x", sha256.Sum256(content.Bytes())), Bin: program,
	}, write(filepath.Join(o.Output, name), content.Bytes())
}

func write(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // everybody may read the files
}

// goBuild builds outside the workspace, as users build the program.
func (o Options) goBuild(ctx context.Context, platform Platform) (string, error) {
	folder, err := filepath.Abs(o.Output)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, programs, platform.OS+"-"+platform.Arch, program)
	build := gobuild.Program{
		Dir: filepath.Join(o.Root, "cli"), Output: binary, Platform: platform.OS + "/" + platform.Arch,
		Ldflags: "-X asterism.dev/cli/internal/command.release=v" + o.Version,
	}
	if message, err := build.Command(ctx).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s for %s/%s: %w\n%s", program, platform.OS, platform.Arch, err, message)
	}
	return binary, nil
}
