package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"go.yaml.in/yaml/v3"

	"asterism.dev/tools/internal/output"
)

// checkReferences fails if a bundle, a catalog, dist or a chart refers to an image that the
// list lacks, or refers to an image by tag: a mirror of the list would be incomplete. Examples
// for users are JSON inside of annotations, and name images of users.
func checkReferences(folder string, list List) error {
	var missing []error
	visit := func(file, reference string) {
		if !list.has(reference) {
			missing = append(missing, fmt.Errorf("%s refers to %q, which %s does not list by digest", file, reference, ListFile))
		}
	}
	err := eachReference(folder, []string{bundlesFolder, catalogFolder, distFolder}, visit)
	return errors.Join(append(missing, err, eachChartReference(folder, visit))...)
}

// eachChartReference calls visit for every reference in the values and the annotations of the
// charts. Templates have no references, and the values in ci are examples for users.
func eachChartReference(folder string, visit func(file, reference string)) error {
	charts, err := filepath.Glob(filepath.Join(folder, chartsFolder, "*"))
	if err != nil {
		return err
	}
	for _, chart := range charts {
		for name, references := range map[string]func([]byte, func(string)) error{"values.yaml": valuesReferences, "Chart.yaml": annotationReferences} {
			content, err := os.ReadFile(filepath.Join(chart, name))
			if err != nil {
				return err
			}
			file := filepath.Join(chartsFolder, filepath.Base(chart), name)
			found := func(reference string) { visit(file, reference) }
			if err := errors.Join(referencesIn(content, found), references(content, found)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// valuesReferences finds the image of the operator, which the values have in parts.
func valuesReferences(values []byte, visit func(string)) error {
	var parts struct {
		Image struct{ Registry, Repository, Tag, Digest string }
	}
	if err := yaml.Unmarshal(values, &parts); err != nil {
		return err
	}
	image := parts.Image
	switch {
	case image.Repository == "": // the chart of a service, or of all operators
	case image.Digest == "":
		visit(image.Registry + "/" + image.Repository + ":" + image.Tag)
	default:
		visit(image.Registry + "/" + image.Repository + "@" + image.Digest)
	}
	return nil
}

// annotationReferences finds the images that Artifact Hub shows: YAML inside of an annotation.
func annotationReferences(chart []byte, visit func(string)) error {
	var metadata struct {
		Annotations map[string]string
	}
	if err := yaml.Unmarshal(chart, &metadata); err != nil {
		return err
	}
	return referencesIn([]byte(metadata.Annotations["artifacthub.io/images"]), visit)
}

// eachReference calls visit for every reference in the folders of a release, with the path of
// the file in the release.
func eachReference(release string, folders []string, visit func(file, reference string)) error {
	for _, folder := range folders {
		contents, err := output.Read(filepath.Join(release, folder))
		if err != nil {
			return err
		}
		for _, path := range slices.Sorted(maps.Keys(contents)) {
			if filepath.Base(filepath.Dir(path)) == "scorecard" {
				continue // the image in the configuration of scorecard is a tool of developers
			}
			file := filepath.Join(folder, path)
			if err := referencesIn(contents[path], func(reference string) { visit(file, reference) }); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// referencesIn finds the values of image fields, and other texts that are references.
func referencesIn(content []byte, visit func(string)) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		walk("", document, visit)
	}
}

func walk(key string, value any, visit func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			walk(key, field, visit)
		}
	case []any:
		for _, item := range value {
			walk("", item, visit)
		}
	case string:
		_, err := name.ParseReference(value, name.StrictValidation)
		if key == "image" || key == "containerImage" || (err == nil && strings.Contains(value, "/")) {
			visit(value)
		}
	}
}
