package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"time"
)

// root is the folder of all files of the archive.
const root = "asterism-report"

// archive is a tar.gz file. The first error stays, and close returns it.
type archive struct {
	zip  *gzip.Writer
	tar  *tar.Writer
	time time.Time
	err  error
}

func newArchive(out io.Writer, now time.Time) *archive {
	zip := gzip.NewWriter(out)
	return &archive{zip: zip, tar: tar.NewWriter(zip), time: now}
}

func (a *archive) add(name string, content []byte) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Name: path.Join(root, name), Mode: 0o600, Size: int64(len(content)), ModTime: a.time}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

func (a *archive) close() error {
	return errors.Join(a.err, a.tar.Close(), a.zip.Close())
}
