// Package openstackimage builds the demo's image from Debian's own packages of OpenStack,
// MariaDB and RabbitMQ. For the tests, it builds variants with other WSGI servers.
package openstackimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/internal/apt"
	"asterism.dev/tools/internal/archive"
	"asterism.dev/tools/internal/cache"
	"asterism.dev/tools/internal/progress"
)

// Releases are the releases of Debian that have an image, beginning with the demo's: trixie
// has OpenStack 2025.1 (Epoxy), and bookworm has OpenStack Zed.
var Releases = []string{"trixie", "bookworm", "forky", "sid"}

// Image returns the name and tag of the image of a release. The tags of the variants begin
// with it.
func Image(release string) string { return "asterism.dev/demo/openstack:" + release }

// Options are the options of one build.
type Options struct {
	Release  string    // of Debian
	Output   string    // docker-archive to write
	Variants bool      // build the variants of the image instead of the image
	Galera   bool      // build only the variant with Galera, which Variants leaves out
	Mirror   string    // of Debian; empty for the machine's own apt sources
	Rebuild  bool      // even if the cache has the image, to get newer packages
	Log      io.Writer // for progress lines
}

// Write builds the image, or its variants, unless the cache has them, and writes them to
// options.Output. Only the build needs root.
func Write(ctx context.Context, options Options) error {
	if !slices.Contains(Releases, options.Release) {
		return fmt.Errorf("no image is made of Debian %q: choose one of %s", options.Release, strings.Join(Releases, ", "))
	}
	folder, err := cache.Dir("images")
	if err != nil {
		return err
	}
	unlock, err := cache.Lock(filepath.Join(folder, "lock"), func() {
		_, _ = fmt.Fprintf(options.Log, "waiting for another run that builds in %s\n", folder)
	})
	if err != nil {
		return err
	}
	defer unlock()
	recipe := newRecipe(options.Release, runtime.GOARCH)
	if options.Galera {
		recipe.Additions, recipe.Variants = galera(options.Release, runtime.GOARCH)
	}
	image, err := cached(ctx, options, folder, recipe.base, func(b *build) error { return b.image(ctx, recipe) })
	if err != nil {
		return err
	}
	if options.Variants || options.Galera {
		options.Rebuild = false
		base, err := archive.Read(image)
		if err != nil {
			return err
		}
		image, err = cached(ctx, options, folder, []any{recipe, base[0].Digest}, func(b *build) error { return b.variants(ctx, recipe, image) })
		if err != nil {
			return err
		}
	}
	return publish(ctx, image, options.Output)
}

// cached returns the path of the archive of a recipe in the cache, which run builds if it
// is missing.
func cached(ctx context.Context, options Options, folder string, recipe any, run func(*build) error) (string, error) {
	key, err := keyOf(recipe)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, key+".tar")
	if _, err := os.Stat(path); err == nil && !options.Rebuild {
		return path, nil
	}
	b := &build{suite: options.Release, dir: filepath.Join(folder, key+".building"), output: path, progress: progress.New(options.Log, 2)}
	if err := b.prepare(ctx, options.Mirror); err != nil {
		return "", err
	}
	if err := run(b); err != nil {
		return "", err
	}
	return path, b.clean()
}

// build builds the archive of a recipe in its own directory.
type build struct {
	suite    string // release of Debian
	dir      string
	output   string   // the archive
	sources  []string // lines of sources.list
	progress *progress.Progress
	line     *progress.Line // of the running step
}

// step runs a step, whose line shows the last line of its output.
func (b *build) step(name string, run func() error) error {
	err := b.progress.During(name, func(line *progress.Line) error {
		b.line = line
		return run()
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (b *build) prepare(ctx context.Context, mirror string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("building the demo image needs root (mmdebstrap and chroot): run the same command with sudo -E")
	}
	if err := b.clean(); err != nil { // leftovers of a failed or killed run
		return err
	}
	run := func(name string, args ...string) error { return b.logged(exec.CommandContext(ctx, name, args...)) }
	if !present("/usr/bin/mmdebstrap") || !present(keyring) {
		if err := apt.Install(run, "mmdebstrap", "debian-archive-keyring"); err != nil {
			return err
		}
	}
	b.sources, err = debianSources(ctx, b.suite, mirror)
	if errors.Is(err, errNoSource) && run("apt-get", "update") == nil { // apt knows only sources that it has read
		b.sources, err = debianSources(ctx, b.suite, mirror)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.root(), 0o755); err != nil {
		return fmt.Errorf("build directory: %w", err)
	}
	return os.WriteFile(b.excluded(), []byte(excluded), 0o644) //nolint:gosec // nothing secret
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// clean removes the build's directory and its log.
func (b *build) clean() error {
	if err := removeTree(b.dir); err != nil {
		return err
	}
	if err := os.Remove(b.log()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove build log: %w", err)
	}
	return nil
}

func (b *build) log() string      { return b.dir + ".log" }
func (b *build) root() string     { return filepath.Join(b.dir, "rootfs") }
func (b *build) excluded() string { return filepath.Join(b.dir, "excluded") }

// layer is the tar file of a layer.
func (b *build) layer(name string) string { return filepath.Join(b.dir, name+".tar") }

// image builds the demo's image, of one layer.
func (b *build) image(ctx context.Context, recipe recipe) error {
	if err := b.step("install MariaDB, RabbitMQ and OpenStack on Debian "+b.suite, func() error {
		return b.mmdebstrap(ctx, nil, "--variant=minbase", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include="+strings.Join(recipe.Packages, ","),
			hook("setup", recipe.Hosts), hook("customize", `chroot "$1" sh -euxc "$2"`, recipe.Configure))
	}); err != nil {
		return err
	}
	return b.step("pack "+recipe.Image, func() error {
		if err := b.logged(exec.CommandContext(ctx, "tar", "--create", "--file", b.layer("base"), "--directory", b.root(),
			"--exclude-from", b.excluded(), "--sort=name", "--numeric-owner", ".")); err != nil {
			return err
		}
		layer, err := archive.LayerFromFile(b.layer("base"))
		if err != nil {
			return err
		}
		return archive.Write(b.output, map[string]archive.Image{recipe.Image: {Config: created(recipe.Config), Layers: []v1.Layer{layer}}})
	})
}

// created returns a configuration with the time of the build.
func created(config v1.ConfigFile) v1.ConfigFile {
	config.Created = v1.Time{Time: time.Now().UTC().Truncate(time.Second)}
	return config
}

// publish links the cached file to output, or copies it if a hard link is not possible.
func publish(ctx context.Context, cached, output string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	partial := output + ".partial"
	const link = `[ ! "$1" -ef "$3" ] || exit 0; cp --force --link "$1" "$2" 2>/dev/null || cp --force "$1" "$2"; mv --force "$2" "$3"`
	if message, err := exec.CommandContext(ctx, "sh", "-euc", link, "sh", cached, partial, output).CombinedOutput(); err != nil {
		return fmt.Errorf("write %s: %w\n%s", output, err, message)
	}
	return nil
}
