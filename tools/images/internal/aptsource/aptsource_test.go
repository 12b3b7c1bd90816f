package aptsource

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// write creates an apt configuration directory with the given files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadParsesBothFormats(t *testing.T) {
	dir := write(t, map[string]string{
		"sources.list": `# deb http://commented.example/debian bookworm main
deb-src http://source.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://one.example/debian bookworm main contrib # why
deb	http://tab.example/debian	bookworm-updates	main
`,
		"sources.list.d/debian.sources": `# comment
Types: deb deb-src
URIs: http://two.example/debian
# a comment inside
Suites: bookworm
 bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
`,
		"sources.list.d/other.sources.disabled": "Types: deb\nURIs: http://no.example\nSuites: bookworm\nComponents: main\n",
	})
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	keyring := "/usr/share/keyrings/debian-archive-keyring.gpg"
	want := []Source{
		{URIs: []string{"http://one.example/debian"}, Suites: []string{"bookworm"}, Components: []string{"main", "contrib"}, SignedBy: keyring},
		{URIs: []string{"http://tab.example/debian"}, Suites: []string{"bookworm-updates"}, Components: []string{"main"}},
		{URIs: []string{"http://two.example/debian"}, Suites: []string{"bookworm", "bookworm-updates"}, Components: []string{"main"}, SignedBy: keyring},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFindDebianSelectsOnlyDebiansArchives(t *testing.T) {
	list := filepath.Join(write(t, map[string]string{"mirrors": "# nearest first\nhttps://list.example/debian\tpriority:1\n"}), "mirrors")
	main := []string{"main"}
	for name, test := range map[string]struct {
		sources []Source
		want    Debian
	}{
		"release, updates and security": {
			sources: []Source{
				{URIs: []string{"http://a.example/debian"}, Suites: []string{"bookworm", "bookworm-updates", "bookworm-backports"}, Components: main},
				{URIs: []string{"http://a.example/security"}, Suites: []string{"bookworm-security"}, Components: main},
			},
			want: Debian{Mirror: "http://a.example/debian", Lines: []string{
				"deb http://a.example/debian bookworm main",
				"deb http://a.example/debian bookworm-updates main",
				"deb http://a.example/security bookworm-security main",
			}},
		},
		"a third party's repository of the same suite": {
			sources: []Source{
				{URIs: []string{"http://vendor.example"}, Suites: []string{"bookworm"}, Components: main, SignedBy: "/etc/apt/keyrings/vendor.gpg"},
				{URIs: []string{"http://vendor.example"}, Suites: []string{"bookworm"}, Components: []string{"stable"}},
				{URIs: []string{"http://b.example/debian"}, Suites: []string{"bookworm"}, Components: main},
			},
			want: Debian{Mirror: "http://b.example/debian", Lines: []string{"deb http://b.example/debian bookworm main"}},
		},
		"a list of mirrors": {
			sources: []Source{{URIs: []string{"cdrom:[Debian]/", "mirror+file://" + list}, Suites: []string{"bookworm"}, Components: main}},
			want:    Debian{Mirror: "https://list.example/debian", Lines: []string{"deb https://list.example/debian bookworm main"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindDebian(test.sources, "bookworm")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestFindDebianNamesTheMissingSuite(t *testing.T) {
	_, err := FindDebian([]Source{{URIs: []string{"http://u.example"}, Suites: []string{"noble"}, Components: []string{"main"}}}, "bookworm")
	if !errors.Is(err, NoMirrorError{Suite: "bookworm"}) {
		t.Errorf("got %v", err)
	}
}
