package openstackimage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var (
	//go:embed packages
	packages string
	//go:embed install.sh
	installScript string
	//go:embed configure.sh
	configureScript string
)

// recipe is everything in this repository that determines the image's content. It does
// not contain the packages' versions, which the mirror determines.
type recipe struct {
	Image     string
	Suite     string
	Packages  []string
	Install   string
	Configure string
	Config    v1.ConfigFile
}

func newRecipe(architecture string) recipe {
	return recipe{
		Image:     Image,
		Suite:     suite,
		Packages:  strings.Fields(packages),
		Install:   installScript,
		Configure: configureScript,
		Config:    config(architecture),
	}
}

// key returns the name of the image in the cache, 16 hexadecimal digits.
func (r recipe) key() (string, error) {
	content, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("content key of image %s: %w", r.Image, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), nil
}

// CacheDir returns the directory of cached images: images in $ASTERISM_CACHE, or in
// asterism of the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("ASTERISM_CACHE"); dir != "" {
		return filepath.Join(dir, "images"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory, set ASTERISM_CACHE: %w", err)
	}
	return filepath.Join(dir, "asterism", "images"), nil
}

func config(architecture string) v1.ConfigFile {
	return v1.ConfigFile{
		OS:           "linux",
		Architecture: architecture,
		Config: v1.Config{
			User:       "42424:42424",
			WorkingDir: "/",
			Cmd:        []string{"/bin/bash"},
			Env: []string{
				"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
				"LANG=C.UTF-8",
				"HOME=/tmp", // the home of an unknown uid would be /
			},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "openstack",
				"org.opencontainers.image.version":     suite,
				"org.opencontainers.image.vendor":      "Asterism",
				"org.opencontainers.image.description": "Nova, Keystone, Placement, MariaDB and RabbitMQ from Debian's packages, for demonstrations and tests",
			},
		},
	}
}
