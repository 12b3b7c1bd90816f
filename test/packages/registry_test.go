package packages

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	containers "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// serveRegistry serves a registry on this machine until the suite ends, and returns the
// prefix of its images. containerd uses HTTP for loopback addresses.
func serveRegistry() string {
	GinkgoHelper()
	blobs := GinkgoT().TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return listener.Addr().String() + "/asterism"
}

// programs are the programs of OLM's own image, by the path of the program in the image.
var programs = map[string]string{
	"bin/olm":               "olm",
	"bin/catalog":           "catalog",
	"bin/opm":               "opm",
	"bin/copy-content":      "copy-content",
	"bin/cpb":               "cpb",
	"bin/cp":                "cp",
	"bin/grpc_health_probe": "grpc-health-probe",
}

// pushOLM pushes an image with the programs that tools/olm builds, and returns its name.
func pushOLM(prefix string) string {
	GinkgoHelper()
	files := map[string][]byte{}
	for path, file := range programs {
		binary, err := os.ReadFile(program(file))
		Expect(err).NotTo(HaveOccurred(), "run this with `make packages-e2e`, which builds OLM")
		files[path] = binary
	}
	return push(prefix+"/olm:test", files)
}

// pushCatalogWithout pushes the catalog of a release without a package, and returns its name.
func pushCatalogWithout(prefix, folder, missing string) string {
	GinkgoHelper()
	files, root := map[string][]byte{}, os.DirFS(filepath.Join(folder, "catalog", "release"))
	Expect(fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, missing+"/") {
			return err
		}
		files["configs/"+path], err = fs.ReadFile(root, path)
		return err
	})).To(Succeed())
	return push(prefix+"/catalog:incomplete", files)
}

// push pushes an image with the files, all of which are executable, and returns its name.
func push(reference string, files map[string][]byte) string {
	GinkgoHelper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for path, file := range files {
		Expect(archive.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(file))})).To(Succeed())
		_, err := archive.Write(file)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(archive.Close()).To(Succeed())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	Expect(err).NotTo(HaveOccurred())
	image, err := mutate.AppendLayers(empty.Image, layer)
	Expect(err).NotTo(HaveOccurred())
	image, err = mutate.ConfigFile(image, &containers.ConfigFile{
		Architecture: "amd64", OS: "linux", RootFS: rootFS(image),
		Config: containers.Config{User: "1001", Env: []string{"PATH=/bin"}},
	})
	Expect(err).NotTo(HaveOccurred())
	tag, err := name.NewTag(reference)
	Expect(err).NotTo(HaveOccurred())
	Expect(remote.Write(tag, image)).To(Succeed())
	return tag.String()
}

func rootFS(image containers.Image) containers.RootFS {
	GinkgoHelper()
	config, err := image.ConfigFile()
	Expect(err).NotTo(HaveOccurred())
	return config.RootFS
}

// pushOperands pushes an empty image for each image of other projects that the operators of a
// tree start: this machine may not reach their registries. No pod of this suite runs them. The
// tree, which is a copy, pins this image where it pins the original.
func pushOperands(prefix, tree string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(tree, "operators", "*", "packaging.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	digest, err := empty.Image.Digest()
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		var operator struct {
			Images []struct{ Image, Digest string }
		}
		readYAML(file, &operator)
		for _, operand := range operator.Images {
			original, err := name.NewTag(operand.Image)
			Expect(err).NotTo(HaveOccurred())
			copied, err := name.NewTag(prefix + "/" + original.RepositoryStr() + ":" + original.TagStr())
			Expect(err).NotTo(HaveOccurred())
			Expect(remote.Write(copied, empty.Image)).To(Succeed())
			if operand.Digest != "" {
				replaceInFile(file, operand.Digest, digest.String())
			}
		}
	}
}

func replaceInFile(path, former, latter string) {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(path, bytes.ReplaceAll(content, []byte(former), []byte(latter)), 0o600)).To(Succeed())
}
