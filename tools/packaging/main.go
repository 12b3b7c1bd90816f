// Command packaging writes the packages of the operators: OLM bundles, catalogs, Helm charts,
// and manifests for kubectl. Its input is config, operators/*/config and the packaging.yaml files.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/sirupsen/logrus"

	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/packages"
)

func main() {
	root := flag.String("root", "..", "directory of the repository")
	output := flag.String("output", "", "folder for all packages, as a release has them, with images by tag (default: only the packages in the repository)")
	flag.Parse()
	logrus.SetLevel(logrus.WarnLevel) // operator-registry reports each optional file that a bundle lacks
	if err := run(*root, *output); err != nil {
		fmt.Fprintf(os.Stderr, "packaging: %v\n", err)
		os.Exit(1)
	}
}

func run(root, output string) error {
	if output == "" {
		return packages.Generate(root)
	}
	project, err := source.Read(root)
	if err != nil {
		return err
	}
	return packages.Write(project, source.ImagesOf(project), output)
}
