package olm

import (
	"archive/tar"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return listener.Addr().String() + "/asterism"
}

// programs are the programs of OLM's own image, by the path of the program in the image.
var programs = map[string]string{
	"bin/olm":     "olm",
	"bin/catalog": "catalog",
	"bin/opm":     "opm",
	"bin/cp":      "copy-content",
	"bin/cpb":     "cpb",
}

// pushOLM pushes an image with the programs that tools/olm builds, and returns its name.
func pushOLM(prefix string) string {
	GinkgoHelper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	Expect(archive.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})).To(Succeed())
	for path, program := range programs {
		binary, err := os.ReadFile(filepath.Join(os.Getenv("OLM_BINARIES"), program))
		Expect(err).NotTo(HaveOccurred(), "run this with `make olm-e2e`, which builds OLM")
		Expect(archive.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(binary))})).To(Succeed())
		_, err = archive.Write(binary)
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
	tag, err := name.NewTag(prefix + "/olm:test")
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
