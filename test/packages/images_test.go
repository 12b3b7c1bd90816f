package packages

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// listedImage is an entry of the list of images of a release.
type listedImage struct{ Name, Kind, Image, Digest string }

// pinned is the reference by digest.
func (i listedImage) pinned() string { return i.Image + "@" + i.Digest }

// images returns the list of images of a release, images.yaml.
func (r release) images() []listedImage {
	GinkgoHelper()
	var list struct{ Images []listedImage }
	readYAML(filepath.Join(r.folder, "images.yaml"), &list)
	return list.Images
}

// operators returns the operators of the control plane: all of the release except that of
// shared volumes, which is installed on its own.
func (r release) operators() (names []string) {
	GinkgoHelper()
	for _, image := range r.images() {
		if name := strings.TrimSuffix(image.Name, "-operator"); image.Kind == "operator" && name != "shared-volume" {
			names = append(names, name)
		}
	}
	Expect(names).NotTo(BeEmpty())
	return names
}

// image returns an entry of the list by its name.
func (r release) image(name string) listedImage {
	GinkgoHelper()
	all := r.images()
	i := slices.IndexFunc(all, func(image listedImage) bool { return image.Name == name })
	Expect(i).To(BeNumerically(">=", 0), "images.yaml has no %s", name)
	return all[i]
}

// expectListedImages expects that every container of every pod, except those of Kubernetes
// itself, has an image of this suite's registry that the list of the release has by digest,
// or one of the images that the administrator has chosen.
func expectListedImages(ctx context.Context, of release, chosen ...string) {
	GinkgoHelper()
	listed := map[string]string{}
	for _, image := range of.images() {
		listed[image.Digest] = image.Name
	}
	found := map[string]bool{}
	var unlisted []string
	for _, image := range podImages(ctx) {
		name, digest, _ := strings.Cut(image.Image, "@")
		switch {
		case slices.Contains(chosen, image.Image):
			found[image.Image] = true
		case strings.HasPrefix(name, imagePrefix+"/") && listed[digest] != "":
			found[listed[digest]] = true
		default:
			unlisted = append(unlisted, image.Pod+": "+image.Image)
		}
	}
	Expect(unlisted).To(BeEmpty(), "images.yaml lists %v", listed)
	for _, operator := range of.operators() {
		Expect(found).To(HaveKey(operator + "-operator"))
	}
	AddReportEntry("images", found)
}

// podImage has exported fields for matchers.
type podImage struct{ Pod, Image string }

// podImages returns the images of all containers and init containers outside of kube-system.
func podImages(ctx context.Context) (all []podImage) {
	GinkgoHelper()
	out := kubectl(ctx, "get", "pods", "--all-namespaces", "--field-selector=metadata.namespace!=kube-system",
		`--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.spec.initContainers[*].image} {.spec.containers[*].image}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		for _, image := range fields[1:] {
			all = append(all, podImage{Pod: fields[0], Image: image})
		}
	}
	return all
}

// operatorImages returns the images of the operators of the control plane.
func operatorImages(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "deployments", "--namespace", systemNamespace, `--output=jsonpath={range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}`)
}

// awaitRollout waits until the pods of all operators of the control plane are of the newest
// revision.
func awaitRollout(ctx context.Context, of release) {
	GinkgoHelper()
	for _, operator := range of.operators() {
		kubectl(ctx, "rollout", "status", "deployment/asterism-"+operator+"-operator", "--namespace", systemNamespace, "--timeout=5m")
	}
}
