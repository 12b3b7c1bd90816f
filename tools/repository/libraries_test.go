package repository

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A serviceName is the name of an OpenStack service, as a word or at the beginning of a word of
// an identifier: nova, novav1, x_nova_y, ComputeNova, NOVA. Keystone is not one of them: like
// MariaDB and RabbitMQ, it is a server that every service uses.
var serviceName = regexp.MustCompile(`(?:^|[^A-Za-z])(?:barbican|cinder|glance|ironic|neutron|nova|placement)|` +
	`Barbican|Cinder|Glance|Ironic|Neutron|Nova|Placement|BARBICAN|CINDER|GLANCE|IRONIC|NEUTRON|NOVA|PLACEMENT`)

func TestNamesOfServicesAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"NovaAPI": true, "novav1.x": true, "RELATED_IMAGE_NOVA": true, "/etc/nova/x": true, "novaconductors": true,
		"ComputeIronic": true, "HTTPNova": true, "use_neutron_default": true, "(*Connections).glance": true,
		"the placement API": true, "barbican_service_user": true, "Cinder's": true,
		"noValue": false, "TestNoValueIsShown": false, "replacement": false, "Keystone": false, "innovation": false,
	} {
		if found := serviceName.MatchString(text); found != want {
			t.Errorf("%q has the name of a service: %v, want %v", text, found, want)
		}
	}
}

// The engine and the builders serve the operators of any project of OpenStack.
func TestCommonKnowsNoService(t *testing.T) {
	files := 0
	for _, path := range filesOf(t, "lib/common") {
		if filepath.Base(path) == "go.sum" {
			continue
		}
		files++
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(content, []byte("\n")) {
			if serviceName.Match(line) {
				t.Errorf("%s:%d names a service: %s\nMove code for Nova to lib/nova, or let the operator pass the name. In a comment or a test, use an invented name.", strings.TrimPrefix(path, root+"/"), i+1, bytes.TrimSpace(line))
			}
		}
	}
	if files < 100 {
		t.Errorf("%d files were read: the search is broken", files)
	}
}

// needs lists, for each library, the other libraries that it may import.
var needs = map[string][]string{
	"lib/common":       nil,
	"lib/registration": {"lib/common"},
	"lib/nova":         {"lib/common", "lib/registration"},
}

func TestLibrariesImportDownwards(t *testing.T) {
	const prefix = "asterism.dev/"
	found := 0
	for _, library := range modules(t) {
		if !strings.HasPrefix(library, "lib/") {
			continue
		}
		allowed, known := needs[library]
		if !known {
			t.Errorf("%s is a new library: add it to needs in this file, with the libraries that it may import", library)
		}
		allowed = append([]string{library}, allowed...)
		for _, path := range filesOf(t, library) {
			for _, imported := range importsOf(t, path) {
				local, ours := strings.CutPrefix(imported, prefix)
				if !ours {
					continue
				}
				found++
				if !slices.ContainsFunc(allowed, func(module string) bool { return local == module || strings.HasPrefix(local, module+"/") }) {
					t.Errorf("%s imports %s: %s may import only %s", strings.TrimPrefix(path, root+"/"), imported, library, strings.Join(allowed, ", "))
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d imports were found: the search is broken", found)
	}
}

// importsOf returns the imports of a Go file, and nothing for another file.
func importsOf(t *testing.T, path string) (imports []string) {
	t.Helper()
	if filepath.Ext(path) != ".go" {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imported)
	}
	return imports
}

// filesOf lists all files in a folder of the repository.
func filesOf(t *testing.T, folder string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
