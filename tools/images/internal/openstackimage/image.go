// Package openstackimage builds the demo image from Debian's own packages of
// OpenStack, MariaDB and RabbitMQ.
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
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/images/internal/aptsource"
	"asterism.dev/tools/images/internal/archive"
)

// Image is the name and tag under which the image is loaded.
const Image = "asterism.dev/demo/openstack:" + suite

// suite is the release of Debian: bookworm has OpenStack Zed.
const suite = "bookworm"

// Options are the options of one build.
type Options struct {
	Output  string    // docker-archive to write
	Mirror  string    // of Debian; empty for the machine's own apt sources
	Rebuild bool      // even if the cache has the image, to get newer packages
	Log     io.Writer // for progress lines
}

// Write builds the image unless the cache has it, and writes it to options.Output. Only
// the build needs root.
func Write(ctx context.Context, options Options) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	recipe := newRecipe(runtime.GOARCH)
	key, err := recipe.key()
	if err != nil {
		return err
	}
	unlock, err := lock(cache, options.Log)
	if err != nil {
		return err
	}
	defer unlock()
	cached := filepath.Join(cache, key+".tar")
	if _, err := os.Stat(cached); err != nil || options.Rebuild {
		build := build{recipe: recipe, dir: filepath.Join(cache, key+".building"), progress: newProgress(options.Log, 4)}
		if err := build.run(ctx, options.Mirror, cached); err != nil {
			return err
		}
	}
	return publish(cached, options.Output)
}

// build builds one image in its own directory.
type build struct {
	recipe   recipe
	dir      string
	progress *progress
}

func (b *build) run(ctx context.Context, mirror, output string) error {
	if os.Geteuid() != 0 {
		return errors.New("building the demo image needs root (debootstrap and chroot): run the same command with sudo -E")
	}
	if err := b.requireDebootstrap(ctx); err != nil {
		return err
	}
	debian, err := findDebian(mirror)
	if err != nil {
		return err
	}
	if err := b.clean(); err != nil { // leftovers of a failed or killed run
		return err
	}
	root := filepath.Join(b.dir, "rootfs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("build directory: %w", err)
	}
	if err := b.fill(ctx, root, debian); err != nil {
		return err
	}
	if err := b.progress.step("pack "+Image, func() error { return b.pack(ctx, root, output) }); err != nil {
		return err
	}
	return b.clean()
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

func (b *build) log() string { return b.dir + ".log" }

// fill creates the root file system.
func (b *build) fill(ctx context.Context, root string, debian aptsource.Debian) error {
	if err := b.progress.step("bootstrap Debian "+suite, func() error {
		return b.inNamespaces(ctx, "debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, debian.Mirror)
	}); err != nil {
		return err
	}
	if err := configureApt(ctx, root, debian); err != nil {
		return err
	}
	if err := b.progress.step("install MariaDB, RabbitMQ and OpenStack", func() error {
		return b.inRoot(ctx, root, b.recipe.Install, b.recipe.Packages...)
	}); err != nil {
		return err
	}
	return b.progress.step("configure for any uid, remove unneeded files", func() error {
		return b.inRoot(ctx, root, b.recipe.Configure)
	})
}

func (b *build) pack(ctx context.Context, root, output string) error {
	layerTar := filepath.Join(b.dir, "layer.tar")
	if err := b.logged(exec.CommandContext(ctx, "tar", "--create", "--file", layerTar, "--directory", root, "--sort=name",
		"--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*", ".")); err != nil {
		return err
	}
	layer, err := archive.LayerFromFile(layerTar)
	if err != nil {
		return err
	}
	config := b.recipe.Config
	config.Created = v1.Time{Time: time.Now().UTC().Truncate(time.Second)}
	return archive.Write(output, Image, config, layer)
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

// lock prevents two builds at the same time.
func lock(cache string, log io.Writer) (func(), error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_, _ = fmt.Fprintf(log, "waiting for another run that builds in %s\n", cache)
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("lock the cache: %w", err)
		}
	}
	return func() { _ = file.Close() }, nil
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
