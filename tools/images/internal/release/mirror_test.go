package release

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// checkMirror copies the listed images to an empty registry, follows the references from
// the catalogs through the bundles there, and finds every image.
func checkMirror(t *testing.T, list List, operands string) {
	t.Helper()
	target := startRegistry(t)
	for _, image := range list.Images {
		source := image.Pinned()
		if image.Kind == kindOperand {
			source = relocated(t, source, operands)
		}
		copyImage(t, source, relocated(t, image.Pinned(), target))
	}
	visited := map[string]bool{}
	for _, image := range list.Images {
		if image.Kind == kindCatalog {
			follow(t, image.Pinned(), target, visited)
		}
	}
	for _, image := range list.Images {
		if image.Kind != kindCatalog && !visited[image.Pinned()] {
			t.Errorf("no catalog leads to %s", image.Pinned())
		}
	}
}

// reference matches a name with a host, a path, and a tag or digest. This expression is
// independent of the release's own check.
var reference = regexp.MustCompile(`[a-z0-9.-]+(\.[a-z]+|:[0-9]+)(/[a-z0-9._-]+)+(@sha256:[0-9a-f]{64}|:v?[0-9][A-Za-z0-9._-]*)`)

// examples are images of users, in annotations with examples, and a tool of developers.
var examples = regexp.MustCompile(`^quay\.example/|^quay\.io/operator-framework/scorecard-test`)

// follow pulls an image of files from the mirror, and the images that its files name.
func follow(t *testing.T, pinned, target string, visited map[string]bool) {
	t.Helper()
	if visited[pinned] {
		return
	}
	visited[pinned] = true
	parsed, err := name.NewDigest(relocated(t, pinned, target))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(parsed); err != nil {
		t.Errorf("the mirror lacks %s: %v", pinned, err)
		return
	}
	if !strings.HasSuffix(parsed.RepositoryStr(), "-bundle") && !strings.HasPrefix(path.Base(parsed.RepositoryStr()), catalogImage) {
		return
	}
	for file, content := range files(t, pullIndex(t, parsed.Name())["amd64"]) {
		for _, found := range reference.FindAllString(string(content), -1) {
			switch {
			case examples.MatchString(found):
			case !strings.Contains(found, "@sha256:"):
				t.Errorf("%s: /%s refers to %s by tag", pinned, file, found)
			default:
				follow(t, found, target, visited)
			}
		}
	}
}

// relocated returns a reference with another host.
func relocated(t *testing.T, pinned, host string) string {
	t.Helper()
	parsed, err := name.NewDigest(pinned)
	if err != nil {
		t.Fatal(err)
	}
	return host + "/" + parsed.RepositoryStr() + "@" + parsed.DigestStr()
}

func copyImage(t *testing.T, source, target string) {
	t.Helper()
	from, err := name.NewDigest(source)
	if err != nil {
		t.Fatal(err)
	}
	to, err := name.NewDigest(target)
	if err != nil {
		t.Fatal(err)
	}
	content, err := remote.Get(from)
	if err != nil {
		t.Fatal(err)
	}
	pusher, err := remote.NewPusher()
	if err != nil {
		t.Fatal(err)
	}
	if err := pusher.Push(t.Context(), to, content); err != nil {
		t.Fatal(err)
	}
}
