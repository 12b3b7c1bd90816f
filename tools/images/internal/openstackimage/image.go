// Package openstackimage builds the demo's images from Debian's own packages of OpenStack,
// MariaDB and RabbitMQ: several builds on one base, which differ in their WSGI servers.
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

// Image is the name and tag of the image of the demo. The tags of the other builds begin
// with it.
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

// Write builds the images unless the cache has them, and writes them to options.Output. Only
// the build needs root.
func Write(ctx context.Context, options Options) error {
	folder, err := cache.Dir("images")
	if err != nil {
		return err
	}
	recipe := newRecipe(runtime.GOARCH)
	key, err := recipe.key()
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
	cached := filepath.Join(folder, key+".tar")
	if _, err := os.Stat(cached); err != nil || options.Rebuild {
		build := build{recipe: recipe, dir: filepath.Join(folder, key+".building"), progress: progress.New(options.Log, 4+len(recipe.Builds))}
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
	if err := b.addBuilds(ctx, root); err != nil {
		return err
	}
	if err := b.step("pack "+Image, func() error { return b.pack(output) }); err != nil {
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
	if err := b.step("bootstrap Debian "+suite, func() error {
		return b.inNamespaces(ctx, "debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, debian.Mirror)
	}); err != nil {
		return err
	}
	if err := configureApt(ctx, root, debian); err != nil {
		return err
	}
	if err := b.step("install MariaDB, RabbitMQ and OpenStack", func() error {
		return b.inRoot(ctx, root, b.recipe.Install, b.recipe.Packages...)
	}); err != nil {
		return err
	}
	return b.step("configure for any uid, remove unneeded files", func() error {
		if err := b.inRoot(ctx, root, b.recipe.Configure); err != nil {
			return err
		}
		options := []string{"--create", "--file", b.layer("base"), "--directory", root, "--sort=name", "--numeric-owner"}
		return b.logged(exec.CommandContext(ctx, "tar", slices.Concat(options, excluded("--exclude=.%s"), []string{"."})...))
	})
}

// layer is the tar file of the base or of a build.
func (b *build) layer(name string) string { return filepath.Join(b.dir, name+".tar") }

// unpacked are the files that only the builds need: apt's, and those of kernel and machine.
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

// addBuilds makes the layer of each build.
func (b *build) addBuilds(ctx context.Context, root string) error {
	for _, variant := range b.recipe.Builds {
		if err := b.step("build "+variant.image(), func() error { return b.addBuild(ctx, root, variant) }); err != nil {
			return err
		}
	}
	return nil
}

// addBuild installs the packages of a build into a copy of the base, whose files are hard
// links: dpkg replaces files, and a file that changes gets a later ctime. The layer consists
// of these files.
func (b *build) addBuild(ctx context.Context, base string, variant variant) error {
	root := filepath.Join(b.dir, variant.name())
	if err := b.logged(exec.CommandContext(ctx, "cp", "--archive", "--link", base, root)); err != nil {
		return err
	}
	stamp := root + ".stamp"
	if err := os.WriteFile(stamp, nil, 0o600); err != nil {
		return fmt.Errorf("build %s: %w", variant.name(), err)
	}
	resolver := filepath.Join(root, "etc", "resolv.conf")
	if err := b.logged(exec.CommandContext(ctx, "cp", "--remove-destination", "--dereference", "/etc/resolv.conf", resolver)); err != nil {
		return err
	}
	const install = `apt-get -q -y --no-install-recommends install "$@"`
	for _, step := range []struct {
		script    string
		arguments []string
	}{{install, variant.Packages}, {b.recipe.Configure, nil}, {variant.Script, variant.Arguments}} {
		if err := b.inRoot(ctx, root, step.script, step.arguments...); err != nil {
			return err
		}
	}
	if err := remove(root, variant.Without); err != nil {
		return fmt.Errorf("build %s: %w", variant.name(), err)
	}
	const changed = `cd "$1"; file=$2 stamp=$3; shift 3
find . -xdev -cnewer "$stamp" "$@" -print0 | tar --create --file "$file" --numeric-owner --no-recursion --null --files-from -`
	var without []string
	for _, path := range excluded(".%s") {
		without = append(without, "!", "-path", path)
	}
	return b.logged(exec.CommandContext(ctx, "sh", append([]string{"-euc", changed, "sh", root, b.layer(variant.name()), stamp}, without...)...))
}

// remove removes files of the base from a layer: the layer has an empty file with a prefix
// instead (OCI image specification: whiteouts).
func remove(root string, paths []string) error {
	for _, path := range paths {
		path = filepath.Join(root, filepath.Dir(path), ".wh."+filepath.Base(path))
		if err := os.WriteFile(path, nil, 0o644); err != nil { //nolint:gosec // a part of the image
			return err
		}
	}
	return nil
}

// pack writes the images of all builds to one archive.
func (b *build) pack(output string) error {
	base, err := archive.LayerFromFile(b.layer("base"))
	if err != nil {
		return err
	}
	images := map[string]archive.Image{}
	for _, variant := range b.recipe.Builds {
		layer, err := archive.LayerFromFile(b.layer(variant.name()))
		if err != nil {
			return err
		}
		config := variant.Config
		config.Created = v1.Time{Time: time.Now().UTC().Truncate(time.Second)}
		images[variant.image()] = archive.Image{Config: config, Layers: []v1.Layer{base, layer}}
	}
	return archive.Write(output, images)
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
