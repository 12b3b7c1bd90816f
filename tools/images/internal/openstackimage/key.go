package openstackimage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
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
	//go:embed kolla.sh
	kollaScript string
	//go:embed kolla_start
	kollaStart string
	//go:embed kolla_set_configs
	kollaSetConfigs string
)

// recipe is everything in this repository that determines the images' content. It does
// not contain the packages' versions, which the mirror determines.
type recipe struct {
	Image     string
	Suite     string
	Packages  []string
	Install   string
	Configure string
	Builds    []variant
}

// variant is a build on the base.
type variant struct {
	Tag      string // appended to the tag of Image
	Packages []string
	// Without are files of the base that the build lacks.
	Without []string
	// Script runs after the packages are installed and configured.
	Script    string
	Arguments []string
	Config    v1.ConfigFile
}

func (v variant) image() string { return Image + v.Tag }
func (v variant) name() string  { return "build" + v.Tag }

func newRecipe(architecture string) recipe {
	return recipe{
		Image:     Image,
		Suite:     suite,
		Packages:  strings.Fields(packages),
		Install:   installScript,
		Configure: configureScript,
		Builds:    builds(architecture),
	}
}

// uwsgi are the programs of uWSGI, on which Debian's package of nova-api depends.
var uwsgi = []string{"/usr/bin/uwsgi", "/usr/bin/uwsgi-core", "/usr/bin/uwsgi_python3", "/usr/bin/uwsgi_python311"}

// builds are the images: with uWSGI, with Apache and mod_wsgi, with the server of Nova alone,
// with none, and with the layout of kolla's images.
func builds(architecture string) []variant {
	const modWSGI = "libapache2-mod-wsgi-py3"
	kolla := config(architecture)
	kolla.Config.User, kolla.Config.Cmd = "42436:42436", []string{"kolla_start"}
	kolla.Config.Env[0] = strings.Replace(kolla.Config.Env[0], "=", "=/var/lib/kolla/venv/bin:/usr/local/bin:", 1)
	return []variant{
		{Config: config(architecture)},
		{Tag: "-apache", Packages: []string{modWSGI}, Without: uwsgi, Config: config(architecture)},
		{Tag: "-nova", Without: uwsgi, Config: config(architecture)},
		{Tag: "-none", Without: append(slices.Clone(uwsgi), "/usr/bin/nova-api"), Config: config(architecture)},
		{
			Tag: "-kolla", Packages: []string{modWSGI, "sudo"}, Without: uwsgi,
			Script: kollaScript, Arguments: []string{kollaStart, kollaSetConfigs}, Config: kolla,
		},
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
