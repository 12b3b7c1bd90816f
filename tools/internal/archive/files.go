package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of a layer, or a folder if its path ends with a slash.
type File struct {
	// Path has no slash at its beginning.
	Path    string
	Mode    int64
	Content []byte
	// Link is the path of an earlier file, of which this file is another name.
	Link string
}

// Tar packs files. The same files and the same time give the same bytes.
func Tar(modified time.Time, files ...File) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, file := range files {
		header := &tar.Header{
			Name: file.Path, Mode: file.Mode, Size: int64(len(file.Content)), ModTime: modified, Format: tar.FormatPAX,
		}
		if file.Link != "" {
			header.Typeflag, header.Linkname = tar.TypeLink, file.Link
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.Path, err)
		}
		if _, err := writer.Write(file.Content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.Path, err)
		}
	}
	err := writer.Close() // writes the archive's end
	return content.Bytes(), err
}

// Layer is an uncompressed layer of files.
func Layer(files ...File) (v1.Layer, error) {
	content, err := Tar(Epoch, files...)
	if err != nil {
		return nil, err
	}
	return static.NewLayer(content, types.DockerUncompressedLayer), nil
}
