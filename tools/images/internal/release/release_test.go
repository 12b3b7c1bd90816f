package release

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"

	"asterism.dev/tools/images/internal/provenance"
	"asterism.dev/tools/images/internal/sbom"
	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/source"
)

const root = "../../../.."

// startRegistry returns the host of a registry that lives as long as the test.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// tinyProgram builds one program without imports in place of every operator.
func tinyProgram(t *testing.T) Program {
	t.Helper()
	source := t.TempDir()
	for file, text := range map[string]string{"go.mod": "module example.dev/tiny\n", "main.go": "package main\n\nfunc main() { println(`ran`) }\n"} {
		if err := os.WriteFile(filepath.Join(source, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context, _, architecture string) (string, error) {
		binary := filepath.Join(source, architecture)
		build := gobuild.Program{Dir: source, Output: binary, Platform: "linux/" + architecture}
		output, err := build.Command(ctx).CombinedOutput()
		if err != nil {
			err = errors.New(string(output))
		}
		return binary, err
	}
}

// mirrorOperands fills a registry with stand-ins for the images of other projects, and returns
// the digests of the stand-ins by the references of the originals.
func mirrorOperands(t *testing.T, host string) map[string]string {
	t.Helper()
	digests := map[string]string{}
	project, err := readProject(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range project.Operators {
		for _, operand := range operator.Images {
			content, err := random.Image(64, 1)
			if err != nil {
				t.Fatal(err)
			}
			reference, err := name.NewTag(operand.Reference)
			if err != nil {
				t.Fatal(err)
			}
			target, err := name.NewTag(host + "/" + reference.RepositoryStr() + ":" + reference.TagStr())
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(target, content); err != nil {
				t.Fatal(err)
			}
			digest, err := content.Digest()
			if err != nil {
				t.Fatal(err)
			}
			digests[operand.Reference] = digest.String()
		}
	}
	return digests
}

// pin pins the digests of stand-ins instead of those of the originals.
func pin(r *release, digests map[string]string) {
	for _, operator := range r.project.Operators {
		for i := range operator.Images {
			operator.Images[i].Digest = digests[operator.Images[i].Reference]
		}
	}
}

// write makes, signs and pushes a release of tiny programs from the bundles of this repository. The
// folder has a former release.
func write(t *testing.T, host, mirror, key string, standIns map[string]string) (folder string, list List) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "release")
	for _, file := range []string{"bundles/gone-operator/manifests/object.yaml", "cli/asterism.yaml", "catalogsource.yaml", "images.yaml"} {
		writeFile(t, "former", folder, file)
	}
	r, err := prepare(t.Context(), Options{
		Root: root, Registry: host + "/asterism", Output: folder, Mirror: mirror, Push: true, SigningKey: key, Log: io.Discard, Program: tinyProgram(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	pin(r, standIns)
	if list, err = r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	return folder, list
}

// TestRelease makes two releases, because a release takes seconds.
func TestRelease(t *testing.T) {
	first, mirror := startRegistry(t), startRegistry(t)
	standIns := mirrorOperands(t, mirror)
	private := newKey(t)
	key := filepath.Join(t.TempDir(), "release.pem")
	writeKey(t, key, "PRIVATE KEY", private)
	folder, list := write(t, first, mirror, key, standIns)

	t.Run("the same source gives the same digests in another folder", func(t *testing.T) {
		again, repeated := write(t, first, mirror, key, standIns) // pushes to the same registry, which refuses other digests
		if !slices.Equal(list.Images, repeated.Images) {
			t.Errorf("first  %v\nsecond %v", list.Images, repeated.Images)
		}
		for _, file := range []string{"sbom/meta-operator.spdx.json", "provenance/meta-operator.intoto.json", "oci/index.json"} {
			if a, b := read(t, folder, file), read(t, again, file); !bytes.Equal(a, b) {
				t.Errorf("%s differs", file)
			}
		}
	})
	t.Run("no file of the former release remains", func(t *testing.T) { checkReplaced(t, folder) })
	t.Run("the list is complete and readable", func(t *testing.T) {
		var stored List
		err := source.ReadYAML(filepath.Join(folder, ListFile), &stored)
		if err != nil || !slices.Equal(stored.Images, list.Images) {
			t.Errorf("%v, read %v", err, stored.Images)
		}
		if _, err := os.Stat(filepath.Join(folder, distFolder, ListFile)); !os.IsNotExist(err) {
			t.Errorf("the release has a second list of images: %v", err)
		}
		counts := map[string]int{}
		for _, image := range list.Images {
			counts[image.Kind]++
		}
		if counts[kindOperator] == 0 || counts[kindBundle] != counts[kindOperator] || counts[kindCatalog] != 2 || counts[kindOperand] == 0 {
			t.Errorf("kinds %v", counts)
		}
	})
	t.Run("both platforms run the program as non-root", func(t *testing.T) { checkOperator(t, pull(t, list, "nova-api-operator")) })
	t.Run("descriptors of platforms have no other fields", func(t *testing.T) { checkDescriptors(t, list) })
	t.Run("bundles have the annotations as labels", func(t *testing.T) { checkBundle(t, pull(t, list, "nova-api-operator-bundle")) })
	t.Run("no layer names a path of this machine", func(t *testing.T) { checkPaths(t, list, folder) })
	t.Run("each image has its SBOM and provenance as referrers", func(t *testing.T) { checkReferrers(t, list) })
	t.Run("every manifest is signed", func(t *testing.T) { checkSignatures(t, list, &private.PublicKey) })
	t.Run("another key replaces no signature", func(t *testing.T) { checkOtherKey(t, list) })
	t.Run("a mirror of the list has all images that bundles and catalogs name", func(t *testing.T) { checkMirror(t, list, mirror) })
}

func TestReleaseOfOnePlatform(t *testing.T) {
	r, err := prepare(t.Context(), Options{
		Root: root, Output: filepath.Join(t.TempDir(), "release"), Platforms: []string{"linux/arm64"}, Log: io.Discard, Program: tinyProgram(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{r.createFolder, r.operators} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range r.published {
		manifest, err := image.index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.String() != "linux/arm64" {
			t.Errorf("%s is for %v", image.Name, manifest.Manifests)
		}
		origin := string(read(t, r.folder, originFolder, image.Name+".intoto.json"))
		if strings.Contains(origin, "linux/amd64") || !strings.Contains(origin, "linux/arm64") {
			t.Errorf("provenance of %s: %s", image.Name, origin)
		}
	}
	if len(r.published) == 0 {
		t.Error("the release has no images")
	}
}

func checkReplaced(t *testing.T, folder string) {
	t.Helper()
	files := filesOf(t, filepath.Dir(folder))
	if !slices.Contains(files, "release/catalogsource.yaml") || !slices.Contains(files, "release/clustercatalog.yaml") {
		t.Errorf("the release has %s", files)
	}
	for _, file := range files {
		if !strings.HasPrefix(file, "release/") || strings.HasPrefix(file, "release/bin/") || string(read(t, filepath.Dir(folder), file)) == "former" {
			t.Errorf("%s remains", file)
		}
	}
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// pull returns the images of an index by architecture.
func pull(t *testing.T, list List, image string) map[string]v1.Image {
	t.Helper()
	i := slices.IndexFunc(list.Images, func(known Image) bool { return known.Name == image })
	return pullIndex(t, list.Images[i].Pinned())
}

func pullIndex(t *testing.T, pinned string) map[string]v1.Image {
	t.Helper()
	reference, err := name.NewDigest(pinned)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, variant := range manifest.Manifests {
		if all[variant.Platform.Architecture], err = index.Image(variant.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkDescriptors reads every index as skopeo 1.9 does: skopeo drops unknown fields, so the
// digest would change.
func checkDescriptors(t *testing.T, list List) {
	t.Helper()
	for _, image := range list.Images {
		if image.Kind == kindOperand {
			continue
		}
		pinned, err := name.NewDigest(image.Pinned())
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Get(pinned)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct{ Manifests []map[string]any }
		if err := json.Unmarshal(index.Manifest, &manifest); err != nil {
			t.Fatal(err)
		}
		for _, descriptor := range manifest.Manifests {
			if fields := slices.Sorted(maps.Keys(descriptor)); !slices.Equal(fields, []string{"digest", "mediaType", "platform", "size"}) {
				t.Errorf("%s: a descriptor has %s", image.Name, fields)
			}
		}
	}
}

// files returns the files of an image's only layer.
func files(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func checkOperator(t *testing.T, images map[string]v1.Image) {
	t.Helper()
	for _, architecture := range []string{"amd64", "arm64"} {
		if images[architecture] == nil {
			t.Fatalf("no image for %s", architecture)
		}
		config, err := images[architecture].ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != architecture || config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
			t.Errorf("%s/%s, user %s, entry point %s", config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint)
		}
		for _, label := range []string{
			"name", "vendor", "version", "release", "summary", "description", "maintainer", "io.k8s.display-name",
			"org.opencontainers.image.title", "org.opencontainers.image.version", "org.opencontainers.image.licenses",
			"org.opencontainers.image.created", "org.opencontainers.image.source",
		} {
			if config.Config.Labels[label] == "" {
				t.Errorf("%s lacks the label %s", architecture, label)
			}
		}
		content := files(t, images[architecture])
		if !bytes.Equal(content["licenses/LICENSE"], read(t, root, "LICENSE")) || len(content["manager"]) == 0 || len(content["licenses/go/LICENSE"]) == 0 {
			t.Errorf("%s lacks the program or licenses, and has %d files", architecture, len(content))
		}
	}
}

func checkBundle(t *testing.T, images map[string]v1.Image) {
	t.Helper()
	config, err := images["amd64"].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var annotations struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := source.ReadYAML(filepath.Join(root, "operators/nova-api/bundle/metadata/annotations.yaml"), &annotations); err != nil {
		t.Fatal(err)
	}
	if len(annotations.Annotations) == 0 {
		t.Error("the bundle has no annotations")
	}
	for label, value := range annotations.Annotations {
		if config.Config.Labels[label] != value {
			t.Errorf("label %s is %q instead of %q", label, config.Config.Labels[label], value)
		}
	}
	content := files(t, images["amd64"])
	for _, file := range []string{"manifests/nova-api-operator.clusterserviceversion.yaml", "metadata/annotations.yaml", "tests/scorecard/config.yaml"} {
		if content[file] == nil {
			t.Errorf("the bundle lacks %s", file)
		}
	}
}

func checkPaths(t *testing.T, list List, folder string) {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{repository, folder, os.TempDir() + "/"}
	for _, variable := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, strings.TrimSpace(string(value)))
	}
	for _, image := range list.Images {
		if image.Kind == kindOperand {
			continue
		}
		for architecture, variant := range pullIndex(t, image.Pinned()) {
			for file, content := range files(t, variant) {
				for _, path := range paths {
					if bytes.Contains(content, []byte(path)) {
						t.Errorf("%s for %s: /%s contains %s", image.Name, architecture, file, path)
					}
				}
			}
		}
	}
}

func checkReferrers(t *testing.T, list List) {
	t.Helper()
	for _, image := range list.Images {
		if image.Kind == kindOperand {
			continue
		}
		documents := referrersOf(t, image)
		document, err := spdxjson.Read(bytes.NewReader(documents[sbom.MediaType]))
		if err != nil {
			t.Fatalf("%s: %v", image.Name, err)
		}
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Errorf("%s: %v", image.Name, err)
		}
		statement := &intoto.Statement{}
		if err := protojson.Unmarshal(documents[provenance.MediaType], statement); err != nil {
			t.Fatalf("%s: %v", image.Name, err)
		}
		if err := statement.Validate(); err != nil {
			t.Errorf("%s: %v", image.Name, err)
		}
		if got := "sha256:" + statement.GetSubject()[0].GetDigest()["sha256"]; got != image.Digest || len(statement.GetSubject()) != 3 {
			t.Errorf("%s: first of %d subjects is %s", image.Name, len(statement.GetSubject()), got)
		}
	}
}

// referrersOf returns the only blob of each referrer by the type of the artifact.
func referrersOf(t *testing.T, image Image) map[string][]byte {
	t.Helper()
	reference, err := name.NewDigest(image.Pinned())
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Referrers(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := found.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string][]byte{}
	for _, referrer := range manifest.Manifests {
		artifact, err := remote.Image(reference.Context().Digest(referrer.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		stated, err := artifact.Manifest() // this registry lists the type of the configuration instead
		if err != nil {
			t.Fatal(err)
		}
		layers, err := artifact.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d blobs, %v", len(layers), err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		if documents[stated.ArtifactType], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
	return documents
}
