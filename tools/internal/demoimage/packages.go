// Package demoimage has what those who build the demo's OpenStack image and those who use it
// must agree on.
package demoimage

import (
	_ "embed"
	"slices"
	"strings"
)

// PackagesLabel is the label of the image with the Debian packages that it was built with,
// separated by spaces. Images that were built before Glance was added have no such label.
const PackagesLabel = "dev.asterism.packages"

var (
	//go:embed packages
	nova string
	//go:embed packages-demo
	servers string
)

// novaAlone are the releases of Debian whose images have only Nova, for its upgrades: their
// packages change, and forky has no Glance.
var novaAlone = []string{"forky", "sid"}

// Packages returns the sorted names of the Debian packages in the image of a release.
func Packages(release string) []string {
	names := strings.Fields(nova)
	if !slices.Contains(novaAlone, release) {
		names = append(names, strings.Fields(servers)...)
	}
	slices.Sort(names)
	return names
}

// Missing returns the packages of the release that an image with these labels lacks.
func Missing(labels map[string]string, release string) []string {
	present := strings.Fields(labels[PackagesLabel])
	return slices.DeleteFunc(Packages(release), func(name string) bool { return slices.Contains(present, name) })
}
