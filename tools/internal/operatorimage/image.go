// Package operatorimage packs one static binary into an image without other files.
package operatorimage

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/internal/archive"
)

// User is the numeric user and group that is conventionally named nonroot. Kubernetes
// cannot verify runAsNonRoot for a name.
const User = "65532:65532"

// architectures are the common architectures of Kubernetes nodes.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64:  "amd64",
	elf.EM_AARCH64: "arm64",
	elf.EM_PPC64:   "ppc64le",
	elf.EM_S390:    "s390x",
}

// Write packs the binary as /manager of the image, and writes the image to output as a
// docker-archive.
func Write(image, binary, output string) error {
	architecture, err := Architecture(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read operator binary: %w", err)
	}
	layer, err := archive.Layer(archive.File{Path: "manager", Mode: 0o755, Content: content})
	if err != nil {
		return err
	}
	return archive.Write(output, map[string]archive.Image{image: {Layers: []v1.Layer{layer}, Config: v1.ConfigFile{
		OS:           "linux",
		Architecture: architecture,
		Created:      v1.Time{Time: archive.Epoch},
		Config: v1.Config{
			Entrypoint: []string{"/manager"},
			User:       User,
			WorkingDir: "/",
			Labels:     labels(image),
		},
	}}})
}

func labels(image string) map[string]string {
	title, version, _ := strings.Cut(path.Base(image), ":")
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.vendor":   "Asterism",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// Architecture returns the architecture, in Go's spelling, of a static binary. It
// refuses a binary that needs a loader, as the image has none.
func Architecture(binary string) (string, error) {
	file, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("operator binary %s: %w", binary, err)
	}
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", fmt.Errorf("operator binary %s is linked dynamically, and its image has no loader: build it with CGO_ENABLED=0", binary)
		}
	}
	architecture, known := architectures[file.Machine]
	if !known {
		return "", fmt.Errorf("operator binary %s is for the unsupported machine %s", binary, file.Machine)
	}
	return architecture, nil
}
