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
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/images/internal/aptsource"
	"asterism.dev/tools/internal/archive"
	"asterism.dev/tools/internal/cache"
	"asterism.dev/tools/internal/progress"
)

// Image is the name and tag of the image of the demo. The tags of the variants begin with it.
const Image = "asterism.dev/demo/openstack:" + suite

// suite is the release of Debian: bookworm has OpenStack Zed.
const suite = "bookworm"

// Options are the options of one build.
type Options struct {
	Output   string    // docker-archive to write
	Variants bool      // build the variants of the image instead of the image
	Mirror   string    // of Debian; empty for the machine's own apt sources
	Rebuild  bool      // even if the cache has the image, to get newer packages
	Log      io.Writer // for progress lines
}

// Write builds the image, or its variants, unless the cache has them, and writes them to
// options.Output. Only the build needs root.
func Write(ctx context.Context, options Options) error {
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
	recipe := newRecipe(runtime.GOARCH)
	image, err := cached(ctx, options, folder, recipe.base, func(b *build) error { return b.image(ctx, recipe) })
	if err != nil {
		return err
	}
	if options.Variants {
		options.Rebuild = false
		image, err = cached(ctx, options, folder, recipe, func(b *build) error { return b.variants(ctx, recipe, image) })
		if err != nil {
			return err
		}
	}
	return publish(image, options.Output)
}

// cached returns the path of the archive of a recipe in the cache, which make builds if it
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
	b := &build{dir: filepath.Join(folder, key+".building"), output: path, progress: progress.New(options.Log, 4)}
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
	dir      string
	output   string // the archive
	debian   aptsource.Debian
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
		return errors.New("building the demo image needs root (debootstrap and chroot): run the same command with sudo -E")
	}
	if err := b.requireDebootstrap(ctx); err != nil {
		return err
	}
	if b.debian, err = findDebian(mirror); err != nil {
		return err
	}
	if err := b.clean(); err != nil { // leftovers of a failed or killed run
		return err
	}
	if err := os.MkdirAll(b.root(), 0o755); err != nil {
		return fmt.Errorf("build directory: %w", err)
	}
	return nil
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

func (b *build) log() string  { return b.dir + ".log" }
func (b *build) root() string { return filepath.Join(b.dir, "rootfs") }

// image builds the demo's image, of one layer.
func (b *build) image(ctx context.Context, recipe recipe) error {
	if err := b.step("bootstrap Debian "+suite, func() error {
		return b.inNamespaces(ctx, "debootstrap", "--force-check-gpg", "--variant=minbase", "--include=ca-certificates", suite, b.root(), b.debian.Mirror)
	}); err != nil {
		return err
	}
	if err := b.step("install MariaDB, RabbitMQ and OpenStack", func() error {
		if err := b.prepareApt(ctx, recipe.base); err != nil {
			return err
		}
		return b.inRoot(ctx, recipe.Install, recipe.Packages...)
	}); err != nil {
		return err
	}
	if err := b.step("configure for any uid, remove unneeded files", func() error {
		if err := b.inRoot(ctx, recipe.Configure); err != nil {
			return err
		}
		options := []string{"--create", "--file", b.layer("base"), "--directory", b.root(), "--sort=name", "--numeric-owner"}
		return b.logged(exec.CommandContext(ctx, "tar", slices.Concat(options, excluded("--exclude=.%s"), []string{"."})...))
	}); err != nil {
		return err
	}
	return b.step("pack "+Image, func() error {
		layer, err := archive.LayerFromFile(b.layer("base"))
		if err != nil {
			return err
		}
		return archive.Write(b.output, map[string]archive.Image{Image: {Config: created(recipe.Config), Layers: []v1.Layer{layer}}})
	})
}

// created returns a configuration with the time of the build.
func created(config v1.ConfigFile) v1.ConfigFile {
	config.Created = v1.Time{Time: time.Now().UTC().Truncate(time.Second)}
	return config
}

// layer is the tar file of a layer.
func (b *build) layer(name string) string { return filepath.Join(b.dir, name+".tar") }

// unpacked are the files that only the build needs: apt's, and those of kernel and machine.
var unpacked = []string{
	"/dev/*", "/proc/*", "/sys/*", "/tmp/*", "/var/lib/apt/lists/*", "/var/cache/apt/*",
	"/etc/apt/sources.list", "/etc/apt/apt.conf.d/90build", "/etc/dpkg/dpkg.cfg.d/image", "/usr/sbin/policy-rc.d",
}

// excluded returns an option of tar or find for each unpacked path.
func excluded(format string) []string {
	var options []string
	for _, path := range unpacked {
		options = append(options, fmt.Sprintf(format, path))
	}
	return options
}

// requireDebootstrap installs a missing debootstrap with apt-get.
func (b *build) requireDebootstrap(ctx context.Context) error {
	if _, err := exec.LookPath("debootstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("debootstrap is missing: install it with this system's package manager")
	}
	command := exec.CommandContext(ctx, "apt-get", "install", "-y", "--no-install-recommends", "debootstrap")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("debootstrap is missing: run apt-get update && apt-get install debootstrap: %w\n%s", err, output)
	}
	return nil
}

func findDebian(mirror string) (aptsource.Debian, error) {
	if mirror != "" {
		return aptsource.Debian{Mirror: mirror, Lines: []string{"deb " + mirror + " " + suite + " main"}}, nil
	}
	const apt = "/etc/apt"
	sources, err := aptsource.Read(apt)
	if err != nil {
		return aptsource.Debian{}, err
	}
	debian, err := aptsource.FindDebian(sources, suite)
	if err != nil {
		return aptsource.Debian{}, fmt.Errorf("%w: add a source to %s, or set --mirror URL", err, apt)
	}
	return debian, nil
}

// publish links the cached file to output, or copies it if a hard link is not possible.
func publish(cached, output string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	partial := output + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", output, err)
	}
	if err := os.Link(cached, partial); err != nil {
		if err := copyFile(cached, partial); err != nil {
			return fmt.Errorf("write %s: %w", output, err)
		}
	}
	if err := os.Rename(partial, output); err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	// Renaming one link of a file onto another of the same file does nothing.
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", output, err)
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		return errors.Join(err, target.Close())
	}
	return target.Close()
}
