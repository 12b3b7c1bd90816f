// Command packaging writes the packages of the operators: OLM bundles, the catalog, the
// manifests of dist and the Helm charts. Its input is config, operators/*/config and the packaging.yaml files.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/sirupsen/logrus"

	"asterism.dev/tools/packaging/packages"
)

func main() {
	root := flag.String("root", "..", "directory of the repository")
	flag.Parse()
	logrus.SetLevel(logrus.WarnLevel) // operator-registry reports each optional file that a bundle lacks
	if err := packages.Generate(*root); err != nil {
		fmt.Fprintf(os.Stderr, "packaging: %v\n", err)
		os.Exit(1)
	}
}
