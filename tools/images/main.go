// Command images builds container images without a container daemon: the demo's OpenStack
// image from Debian's packages, and all images of a release. It also packs kubectl asterism.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"asterism.dev/tools/images/internal/openstackimage"
	"asterism.dev/tools/images/internal/plugin"
	"asterism.dev/tools/images/internal/release"
)

const usage = `usage:
  images openstack --output FILE.tar [--release bookworm] [--variants | --galera] [--mirror URL] [--rebuild]
        build asterism.dev/demo/openstack from packages of a release of Debian (default: trixie), or its
        variants for tests, or its variant with Galera (needs root and mmdebstrap)
  images release --output DIR [--root DIR] [--registry HOST/PATH] [--version V] [--mirror HOST/PATH]
                 [--platforms linux/amd64,linux/arm64] [--push [--signing-key FILE.pem]]
        build the operators, their bundles and the catalogs (default: for all of these platforms)
  images operands [--root DIR] [--mirror HOST/PATH]
        print the images of other projects with the digests of their tags, to pin them in packaging.yaml
  images plugin --output DIR [--root DIR] [--version V] [--address URL]
        build kubectl asterism for Linux and macOS, with a manifest for krew
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	start := time.Now()
	output, err := run(ctx, os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "images %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	if output != "" {
		fmt.Printf("%s (%s)\n", output, time.Since(start).Round(100*time.Millisecond))
	}
}

// run returns the path of the written file, "" if the command only prints.
func run(ctx context.Context, command string, args []string) (string, error) {
	flags := flag.NewFlagSet("images "+command, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	output := flags.String("output", "", "docker-archive to write, or folder of a release")
	switch command {
	case "openstack":
		release := flags.String("release", openstackimage.Releases[0], "release of Debian: "+strings.Join(openstackimage.Releases, " or "))
		variants := flags.Bool("variants", false, "build the variants of the image, with other WSGI servers")
		galera := flags.Bool("galera", false, "build the variant of the image with Galera")
		mirror := flags.String("mirror", "", "Debian mirror (default: the machine's own apt sources)")
		rebuild := flags.Bool("rebuild", false, "build even if the cache has the image, to get newer packages")
		if err := parse(flags, args); err != nil {
			return "", err
		}
		return *output, openstackimage.Write(ctx, openstackimage.Options{
			Release: *release, Output: *output, Variants: *variants, Galera: *galera, Mirror: *mirror, Rebuild: *rebuild, Log: os.Stderr,
		})
	case "release":
		return releaseImages(ctx, flags, args, output)
	case "operands":
		options := release.Options{}
		flags.StringVar(&options.Root, "root", "..", "directory of the repository")
		flags.StringVar(&options.Mirror, "mirror", "", "host and path of copies of other projects' images")
		if err := flags.Parse(args); err != nil {
			return "", err
		}
		return "", release.WriteOperands(ctx, options, os.Stdout)
	case "plugin":
		options := plugin.Options{}
		flags.StringVar(&options.Root, "root", "..", "directory of the repository")
		flags.StringVar(&options.Version, "version", "", "version of the program (default: that of config/packaging.yaml)")
		flags.StringVar(&options.Address, "address", "", "URL of the folder with the archives (default: a release of the repository)")
		if err := parse(flags, args); err != nil {
			return "", err
		}
		options.Output = *output
		return filepath.Join(*output, plugin.Manifest), plugin.Write(ctx, options)
	default:
		return "", fmt.Errorf("unknown command\n%s", usage)
	}
}

// releaseImages returns the path of the list of images.
func releaseImages(ctx context.Context, flags *flag.FlagSet, args []string, output *string) (string, error) {
	logrus.SetLevel(logrus.WarnLevel) // operator-registry reports each optional file that a bundle lacks
	options := release.Options{Log: os.Stderr}
	flags.StringVar(&options.Root, "root", "..", "directory of the repository")
	flags.StringVar(&options.Registry, "registry", "", "host and path of the images (default: that of config/packaging.yaml)")
	flags.StringVar(&options.Version, "version", "", "version of the images (default: that of config/packaging.yaml)")
	flags.StringVar(&options.Mirror, "mirror", "", "host and path of copies of other projects' images, to read their digests")
	flags.BoolVar(&options.Push, "push", false, "push the images to the registry")
	flags.StringVar(&options.SigningKey, "signing-key", "", "file with a key that signs the pushed images, an ECDSA key of the curve P-256 in PEM")
	platforms := flags.String("platforms", strings.Join(release.Platforms, ","), "platforms of the images, separated by commas")
	if err := parse(flags, args); err != nil {
		return "", err
	}
	options.Output, options.Platforms = *output, strings.Split(*platforms, ",")
	_, err := release.Write(ctx, options)
	return filepath.Join(*output, release.ListFile), err
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.Lookup("output").Value.String() == "" {
		return fmt.Errorf("--output is missing\n%s", usage)
	}
	return nil
}
