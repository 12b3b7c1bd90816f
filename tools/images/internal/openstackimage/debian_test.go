package openstackimage

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository creates an archive with a package and without signatures, and returns its address.
func repository(t *testing.T, origin, codename, components string) string {
	t.Helper()
	folder := t.TempDir()
	text := fmt.Sprintf("Origin: %s\nSuite: oldstable\nCodename: %s\nComponents: %s\nArchitectures: amd64 arm64 all\nSHA256:\n", origin, codename, components)
	const packages = "Package: evil\nVersion: 1\nArchitecture: all\nMaintainer: m\nFilename: evil.deb\nSize: 1\nDescription: d\n"
	for component := range strings.FieldsSeq(components) {
		for _, architecture := range []string{"amd64", "arm64", "all"} {
			name := component + "/binary-" + architecture + "/Packages"
			write(t, filepath.Join(folder, "dists", codename, name), packages)
			text += fmt.Sprintf(" %x %d %s\n", sha256.Sum256([]byte(packages)), len(packages), name)
		}
	}
	write(t, filepath.Join(folder, "dists", codename, "Release"), text)
	return "file:" + folder
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// machine lets apt use a machine with these sources, and reads their lists.
func machine(t *testing.T, sources ...string) error {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "apt.conf"), fmt.Sprintf("Dir %q;\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n", root))
	write(t, filepath.Join(root, "etc/apt/sources.list"), strings.Join(sources, "\n")+"\n")
	write(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	t.Setenv("APT_CONFIG", filepath.Join(root, "apt.conf"))
	if output, err := exec.CommandContext(t.Context(), "apt-get", "update", "--error-on=any").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

func TestSourcesAreThoseOfDebian(t *testing.T) {
	release, security := repository(t, "Debian", "bookworm", "main contrib"), repository(t, "Debian", "bookworm-security", "main")
	if err := machine(
		t, "deb [trusted=yes] "+repository(t, "Vendor", "bookworm", "main")+" bookworm main",
		"deb [trusted=yes] "+release+" bookworm main contrib", "deb [trusted=yes] "+security+" bookworm-security main",
		"deb [trusted=yes] "+repository(t, "Debian", "bookworm-backports", "main")+" bookworm-backports main",
		"deb [trusted=yes] "+repository(t, "Debian", "trixie", "main")+" trixie main",
		"deb-src [trusted=yes] "+repository(t, "Debian", "bookworm-updates", "main")+" bookworm-updates main",
	); err != nil {
		t.Fatal(err)
	}
	got, err := debianSources(t.Context(), "bookworm", "")
	want := []string{ // whatever the machine trusts
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + release + "/ bookworm main",
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + security + "/ bookworm-security main",
	}
	if slices.Sort(got); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
}

func TestMachineHasSourcesOfOtherReleases(t *testing.T) {
	release, security := repository(t, "Debian", "bookworm", "main"), repository(t, "Debian", "bookworm-security", "main")
	if err := machine(t, "deb [trusted=yes] "+release+" bookworm main", "deb [trusted=yes] "+security+" bookworm-security main"); err != nil {
		t.Fatal(err)
	}
	got, err := debianSources(t.Context(), "trixie", "")
	want := []string{
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + release + "/ trixie main",
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + security + "/ trixie-security main",
	}
	if slices.Sort(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	got, err = debianSources(t.Context(), "sid", "")
	if want = []string{"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + release + "/ sid main"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("sid, which has no security archive: got  %q, %v\nwant %q", got, err, want)
	}
}

func TestMachineWithoutDebianNeedsAMirror(t *testing.T) {
	if err := machine(t, "deb [trusted=yes] "+repository(t, "Debian", "bookworm-security", "main")+" bookworm-security main"); err != nil {
		t.Fatal(err)
	}
	if sources, err := debianSources(t.Context(), "bookworm", ""); !errors.Is(err, errNoSource) {
		t.Errorf("got %q, %v", sources, err)
	}
}

// TestUnsignedPackagesAreRefused lets apt read the archive of a man in the middle.
func TestUnsignedPackagesAreRefused(t *testing.T) {
	mirror := repository(t, "Debian", "bookworm", "main")
	if err := machine(t, "deb [trusted=yes] "+mirror+" bookworm main"); err != nil {
		t.Fatal("the archive cannot be read at all:", err)
	}
	found, err := debianSources(t.Context(), "bookworm", "")
	if err != nil {
		t.Fatal(err)
	}
	given, err := debianSources(t.Context(), "bookworm", mirror)
	if err != nil {
		t.Fatal(err)
	}
	for _, sources := range [][]string{found, given} {
		if err := machine(t, sources...); err == nil || !strings.Contains(err.Error(), "not signed") {
			t.Errorf("apt accepts %q: %v", sources, err)
		}
	}
}

func TestHooksGetTheirArguments(t *testing.T) {
	option := hook("customize", `printf '%s|' "$@"`, "it's", "$HOME `id` \"x\"\n", "")
	script, found := strings.CutPrefix(option, "--customize-hook=")
	output, err := exec.CommandContext(t.Context(), "sh", "-c", script, "exec", "/a root").Output() // as mmdebstrap does
	if want := "/a root|it's|$HOME `id` \"x\"\n||"; !found || err != nil || string(output) != want {
		t.Errorf("got %q, %v, want %q", output, err, want)
	}
}
