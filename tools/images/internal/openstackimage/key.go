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

	"asterism.dev/tools/internal/demoimage"
)

var (
	//go:embed dpkg.cfg
	dpkgOptions string
	//go:embed excluded
	excluded string // patterns of tar: what only the build needs
	//go:embed configure.sh
	configureScript string
	//go:embed add.sh
	addScript string
	//go:embed kolla.sh
	kollaScript string
	//go:embed kolla_start
	kollaStart string
	//go:embed kolla_set_configs
	kollaSetConfigs string
)

// hostsScript names the host itself, which the scripts of the OpenStack packages look up.
const hostsScript = `printf '127.0.0.1 localhost\n::1 localhost\n' > "$1/etc/hosts"`

// base is everything in this repository that determines the content of the demo's image. It
// does not contain the packages' versions, which the mirror determines.
type base struct {
	Image     string
	Suite     string
	Packages  []string
	Hosts     string
	Dpkg      string
	Configure string
	Excluded  string
	Config    v1.ConfigFile
}

// recipe also determines the content of the variants.
type recipe struct {
	base
	Add       string
	Additions []addition
	Variants  []variant
}

func newRecipe(release, architecture string) recipe {
	additions, variants := variants(release, architecture)
	return recipe{
		base: base{
			Image:     Image(release),
			Suite:     release,
			Packages:  demoimage.Packages(release),
			Hosts:     hostsScript,
			Dpkg:      dpkgOptions,
			Configure: configureScript,
			Excluded:  excluded,
			Config:    config(release, architecture),
		},
		Add:       addScript,
		Additions: additions,
		Variants:  variants,
	}
}

// uwsgi are the programs of uWSGI, on which Debian's package of nova-api depends.
var uwsgi = []string{"/usr/bin/uwsgi", "/usr/bin/uwsgi-core", "/usr/bin/uwsgi_python3", "/usr/bin/uwsgi_python311", "/usr/bin/uwsgi_python313"}

// variants are the images with Apache and mod_wsgi, with the server of Nova alone, with no
// server, with the layout of kolla's images, and in this layout with what a compute of libvirt
// needs.
func variants(release, architecture string) ([]addition, []variant) {
	kolla := config(release, architecture)
	kolla.Config.User, kolla.Config.Cmd = "42436:42436", []string{"kolla_start"}
	kolla.Config.Env[0] = strings.Replace(kolla.Config.Env[0], "=", "=/var/lib/kolla/venv/bin:/usr/local/bin:", 1)
	const apacheLayer, kollaLayer, libvirtLayer = "Apache", "kolla's layout", "nova-compute"
	additions := []addition{
		{Name: apacheLayer, Packages: []string{"libapache2-mod-wsgi-py3"}, Script: "true"},
		{Name: kollaLayer, Packages: []string{"sudo"}, Script: kollaScript, Arguments: []string{kollaStart, kollaSetConfigs}},
		// Of the packages that nova-compute accepts for a hypervisor, Ironic's has no libvirtd and no QEMU.
		{Name: libvirtLayer, Packages: []string{"nova-compute", "nova-compute-ironic", "genisoimage"}, Script: "chmod u+s /usr/bin/sudo"},
	}
	return additions, []variant{
		{Tag: "-apache", Layers: []string{apacheLayer}, Without: uwsgi, Config: config(release, architecture)},
		{Tag: "-nova", Without: uwsgi, Config: config(release, architecture)},
		{Tag: "-none", Without: append(slices.Clone(uwsgi), "/usr/bin/nova-api"), Config: config(release, architecture)},
		{Tag: "-kolla", Layers: []string{apacheLayer, kollaLayer}, Without: uwsgi, Config: kolla},
		{Tag: "-libvirt", Layers: []string{apacheLayer, kollaLayer, libvirtLayer}, Config: kolla},
	}
}

// galera is the image with Debian's mariadb-server, whose package creates databases.
func galera(release, architecture string) ([]addition, []variant) {
	const layer = "Galera"
	return []addition{{Name: layer, Packages: []string{"mariadb-server"}, Script: "find /var/lib/mysql -mindepth 1 -delete"}},
		[]variant{{Tag: "-galera", Layers: []string{layer}, Config: config(release, architecture)}}
}

// keyOf returns the name of the images of a recipe in the cache, 16 hexadecimal digits.
func keyOf(recipe any) (string, error) {
	content, err := json.Marshal(recipe)
	if err != nil {
		return "", fmt.Errorf("content key of the image: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), nil
}

func config(release, architecture string) v1.ConfigFile {
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
				"org.opencontainers.image.version":     release,
				"org.opencontainers.image.vendor":      "Asterism",
				"org.opencontainers.image.description": "Nova, Keystone, Placement, MariaDB and RabbitMQ from Debian's packages, for demonstrations and tests",
				demoimage.PackagesLabel:                strings.Join(demoimage.Packages(release), " "),
			},
		},
	}
}
