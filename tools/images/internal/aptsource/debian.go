package aptsource

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Debian contains the sources of one release of Debian.
type Debian struct {
	Mirror string   // of the release itself
	Lines  []string // sources.list of the release, its updates and its security updates
}

// NoMirrorError reports that no source of Debian's own archive has the suite.
type NoMirrorError struct{ Suite string }

func (e NoMirrorError) Error() string {
	return fmt.Sprintf("no source of Debian %s is configured on this machine", e.Suite)
}

// FindDebian selects Debian's own archives among the sources. A third party's repository
// may use the same names of suites and components. It is recognised by a key that is not
// of Debian's archive.
func FindDebian(sources []Source, suite string) (Debian, error) {
	var debian Debian
	for _, source := range sources {
		isDebians := source.SignedBy == "" || strings.Contains(source.SignedBy, "debian-archive")
		if !isDebians || !slices.Contains(source.Components, "main") {
			continue
		}
		uri, err := firstMirror(source.URIs)
		if err != nil {
			return Debian{}, err
		}
		for _, name := range source.Suites {
			if uri == "" || !slices.Contains([]string{suite, suite + "-updates", suite + "-security"}, name) {
				continue
			}
			if name == suite && debian.Mirror == "" {
				debian.Mirror = uri
			}
			debian.Lines = append(debian.Lines, fmt.Sprintf("deb %s %s main", uri, name))
		}
	}
	if debian.Mirror == "" {
		return Debian{}, NoMirrorError{Suite: suite}
	}
	return debian, nil
}

// firstMirror returns the first address that debootstrap supports. It also reads lists of
// mirrors (mirror+file:/path, as in Debian's cloud images).
func firstMirror(uris []string) (string, error) {
	for _, uri := range uris {
		scheme, rest, _ := strings.Cut(uri, ":")
		switch scheme {
		case "http", "https", "file":
			return uri, nil
		case "mirror+file":
			list := "/" + strings.TrimLeft(rest, "/")
			data, err := os.ReadFile(list)
			if err != nil {
				return "", fmt.Errorf("read list of mirrors: %w", err)
			}
			for line := range strings.Lines(string(data)) {
				if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
					return words[0], nil
				}
			}
		}
	}
	return "", nil
}
