package release

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"asterism.dev/tools/internal/source"
)

var (
	digestOne = "sha256:" + strings.Repeat("1", 64)
	digestTwo = "sha256:" + strings.Repeat("2", 64)
	listOfOne = List{Images: []Image{{Name: "one", Kind: kindOperator, Reference: "a.example:5000/x/one:v1", Digest: digestOne}}}
)

func writeFile(t *testing.T, text string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReferencesOutsideOfTheListAreRefused(t *testing.T) {
	for text, refused := range map[string]bool{
		"image: a.example:5000/x/one@" + digestOne:                         false,
		"image: a.example:5000/x/one@" + digestTwo:                         true,
		"image: a.example:5000/x/other@" + digestOne:                       true,
		"image: a.example:5000/x/one:v1":                                   true,
		"image: one":                                                       true,
		"env:\n- {name: RELATED_IMAGE_X, value: 'b.example/y/two:v2'}":     true,
		"annotations: {containerImage: 'a.example:5000/x/one:v1'}":         true,
		"---\nfirst: true\n---\nimage: b.example/y/two:v2":                 true,
		"links: [{url: 'https://a.example/docs'}]\nversion: apps/v1":       false,
		"annotations: {alm-examples: '[{\"image\": \"b.example/y:v2\"}]'}": false,
	} {
		output := t.TempDir()
		writeFile(t, text, output, bundlesFolder, "one-operator", "manifests", "object.yaml")
		writeFile(t, "schema: olm.package", output, catalogFolder, "release", "one-operator", "package.yaml")
		writeFile(t, "kind: List", output, distFolder, "install.yaml")
		if err := checkReferences(output, listOfOne); (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReferencesOfChartsAreChecked(t *testing.T) {
	const image, annotations = "image: {registry: 'a.example:5000/x', repository: one, tag: '', digest: '", "annotations: {artifacthub.io/images: '[{name: one, image: a.example:5000/x/one@"
	for _, c := range []struct {
		about, values, chart string
		refused              bool
	}{
		{"listed", image + digestOne + "'}", annotations + digestOne + "}]'}", false},
		{"no images", "operators: {meta: true}", "name: all", false},
		{"another digest", image + digestTwo + "'}", "name: one", true},
		{"no digest", image + "'}", "name: one", true},
		{"operand", "images: {driver: 'b.example/y/two:v2'}", "name: one", true},
		{"annotation", "name: ''", annotations + digestTwo + "}]'}", true},
	} {
		output := t.TempDir()
		for _, folder := range []string{bundlesFolder, catalogFolder, distFolder} {
			writeFile(t, "kind: List", output, folder, "object.yaml")
		}
		writeFile(t, c.values, output, chartsFolder, "one-operator", "values.yaml")
		writeFile(t, c.chart, output, chartsFolder, "one-operator", "Chart.yaml")
		if err := checkReferences(output, listOfOne); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}

func TestImagesOfEarlierVersionsAreListed(t *testing.T) {
	output := t.TempDir()
	catalogs := filepath.Join(output, catalogFolder, "release", "one-operator")
	writeFile(t, "image: a.example/x/one@"+digestTwo, catalogs, "one-operator.v0.1.0.yaml")
	r := &release{Options: Options{Version: "0.2.0"}, folder: output}
	if err := r.earlier(t.Context()); err != nil || len(r.list.Images) != 1 || r.list.Images[0].Pinned() != "a.example/x/one@"+digestTwo {
		t.Errorf("%v, %v", r.list.Images, err)
	}
	writeFile(t, "image: a.example/x/one:v0.1.0", catalogs, "one-operator.v0.1.0.yaml")
	const file = "catalog/release/one-operator/one-operator.v0.1.0.yaml" // in the repository, too
	if err := r.earlier(t.Context()); err == nil || !strings.HasPrefix(err.Error(), file+" refers to a.example/x/one:v0.1.0 by tag") {
		t.Errorf("a tag of an earlier version: %v", err)
	}
}

func TestTagOfAnotherImageIsNotMoved(t *testing.T) {
	content, err := random.Index(64, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(startRegistry(t) + "/x/one:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, content); err != nil {
		t.Fatal(err)
	}
	image := published{Image: Image{Reference: tag.Name(), Digest: digestOne}}
	if err := pushImage(t.Context(), image); err == nil || !strings.Contains(err.Error(), "raise the version") {
		t.Errorf("got %v", err)
	}
}

func TestUnreachableOperandNamesTheMirror(t *testing.T) {
	r := &release{Options: Options{Mirror: startRegistry(t)}}
	_, err := r.operandDigest(t.Context(), source.Image{Reference: "registry.example/x/driver:v1"})
	if err == nil || !strings.Contains(err.Error(), "as HOST/PATH/x/driver:v1, and type \"make release OPERAND_MIRROR=HOST/PATH") {
		t.Errorf("got %v", err)
	}
}

// TestFailedReleaseKeepsTheFormerOne fails at the first and at a later step.
func TestFailedReleaseKeepsTheFormerOne(t *testing.T) {
	failures := map[string]string{"operands": "gives no digest", "programs": "no program"}
	mirror := startRegistry(t)
	standIns := mirrorOperands(t, mirror)
	for step, options := range map[string]Options{
		"operands": {Mirror: startRegistry(t)},
		"programs": {Mirror: mirror, Program: func(context.Context, string, string) (string, error) { return "", errors.New("no program") }},
	} {
		parent := t.TempDir()
		options.Root, options.Registry, options.Output, options.Log = root, "a.example/x", filepath.Join(parent, "release"), io.Discard
		former := []string{"bundles/one-operator/manifests/object.yaml", "catalogsource.yaml", "images.yaml"}
		for _, file := range former {
			writeFile(t, "former", options.Output, file)
		}
		r, err := prepare(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		pin(r, standIns)
		if _, err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), failures[step]) {
			t.Errorf("%s: got %v", step, err)
		}
		if got := filesOf(t, parent); !slices.Equal(got, inFolder("release", former)) {
			t.Errorf("%s: the release has %s", step, got)
		}
	}
}

// filesOf returns the relative paths of all files below a folder.
func filesOf(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func inFolder(folder string, files []string) (all []string) {
	for _, file := range files {
		all = append(all, folder+"/"+file)
	}
	return all
}

func TestFolderOfAUserIsKept(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, "mine", folder, "notes")
	_, err := Write(t.Context(), Options{Root: root, Output: folder, Mirror: startRegistry(t), Log: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "is no release because it lacks images.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestProgramOfAnotherArchitectureIsRefused(t *testing.T) {
	amd64 := tinyProgram(t)
	r := &release{Options: Options{Program: amd64}}
	path, err := amd64(t.Context(), "", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	r.Program = func(context.Context, string, string) (string, error) { return path, nil }
	if _, _, err := r.program(t.Context(), "nova", "arm64"); err == nil || !strings.Contains(err.Error(), "amd64") {
		t.Errorf("got %v", err)
	}
}

func TestPlatformsAreSomeOfThoseOfARelease(t *testing.T) {
	for _, c := range []struct {
		platforms, architectures []string
		err                      string
	}{
		{nil, []string{"amd64", "arm64"}, ""},
		{[]string{"linux/amd64"}, []string{"amd64"}, ""},
		{[]string{"linux/arm64", "linux/amd64", "linux/arm64"}, []string{"amd64", "arm64"}, ""},
		{[]string{"linux/amd64", "linux/s390x"}, nil, `--platforms: "linux/s390x" is not a platform of a release: choose from linux/amd64,linux/arm64`},
		{[]string{"amd64"}, nil, `--platforms: "amd64" is`},
		{[]string{""}, nil, `--platforms: "" is`},
	} {
		r, err := prepare(t.Context(), Options{Root: root, Platforms: c.platforms})
		switch {
		case c.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%q: got error %v", c.platforms, err)
			}
		case err != nil || !slices.Equal(r.architectures, c.architectures):
			t.Errorf("%q: got %v, %v", c.platforms, r, err)
		}
	}
}

func TestSourceDateEpochReplacesTheDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	project, err := readProject(t.Context(), root)
	if err != nil || !project.Created.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("%v, %v", project.Created, err)
	}
}
