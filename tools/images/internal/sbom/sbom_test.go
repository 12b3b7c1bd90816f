package sbom

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"asterism.dev/tools/images/internal/ociimage"
	"asterism.dev/tools/internal/archive"
)

// program is the information of a build in a workspace, as `go version -m` prints it.
const program = `path	asterism.dev/operators/meta/cmd
mod	asterism.dev/operators/meta	(devel)	
dep	asterism.dev/lib/common	(devel)	
dep	sigs.k8s.io/controller-runtime	v0.25.2	h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
dep	example.org/replaced	v1.0.0
=>	example.org/fork	v1.0.1	h1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=
`

func exampleDocument(t *testing.T) []byte {
	t.Helper()
	info, err := debug.ParseBuildInfo(program)
	if err != nil {
		t.Fatal(err)
	}
	info.GoVersion = "go1.26.8" // is not part of the text
	image := Image{
		Name: "meta-operator", Repository: "registry.example/asterism/meta-operator", Version: "0.1.0",
		Digest: "sha256:" + strings.Repeat("0", 64), Supplier: "Asterism", License: "Apache-2.0",
		Namespace: "https://asterism.dev/spdx", Created: time.Unix(0, 0),
	}
	for digit, architecture := range map[string]string{"1": "amd64", "2": "arm64"} {
		image.Variants = append(image.Variants, Variant{
			Variant: ociimage.Variant{Architecture: architecture, Files: []archive.File{{Path: "manager", Content: []byte(architecture)}}},
			Digest:  "sha256:" + strings.Repeat(digit, 64), Program: info,
		})
	}
	content, err := Document(image)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDocumentListsEachModuleOnce(t *testing.T) {
	parsed, err := spdxjson.Read(bytes.NewReader(exampleDocument(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(parsed); err != nil {
		t.Error(err)
	}
	found := map[string]string{}
	for _, element := range parsed.Packages {
		if element.PrimaryPackagePurpose != "LIBRARY" {
			continue
		}
		if _, twice := found[element.PackageName]; twice {
			t.Errorf("%s is listed twice", element.PackageName)
		}
		found[element.PackageName] = element.PackageVersion + " " + element.PackageSourceInfo
	}
	for module, want := range map[string]string{
		"sigs.k8s.io/controller-runtime": "v0.25.2 sum in go.sum: h1:AAAA",
		"example.org/fork":               "v1.0.1 sum in go.sum: h1:BBBB",
		"asterism.dev/lib/common":        "v0.1.0 ",
		"asterism.dev/operators/meta":    "v0.1.0 ",
		"stdlib":                         "1.26.8 ",
	} {
		if !strings.HasPrefix(found[module], want) || found[module] == "" {
			t.Errorf("%s is %q instead of %q", module, found[module], want)
		}
	}
	if len(found) != 5 {
		t.Errorf("%d modules", len(found))
	}
	if len(parsed.Files) != 2 {
		t.Errorf("%d files", len(parsed.Files))
	}
}
