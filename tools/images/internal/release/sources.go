package release

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// writeSources writes the objects that name the catalogs to OLM.
func (r *release) writeSources(context.Context) error {
	metadata := map[string]any{"name": "asterism"}
	err := r.writeObject("catalogsource.yaml", map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": metadata,
		"spec": map[string]any{
			"sourceType": "grpc", "image": r.pinned(catalogImage),
			"displayName": r.project.Provider, "publisher": r.project.Provider,
			// The image has no program: OLM serves the files with its own.
			"grpcPodConfig": map[string]any{
				"securityContextConfig": "restricted",
				"extractContent":        map[string]any{"catalogDir": "/configs"},
			},
		},
	})
	if err != nil {
		return err
	}
	return r.writeObject("clustercatalog.yaml", map[string]any{
		"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": metadata,
		"spec": map[string]any{"source": map[string]any{
			"type": "Image", "image": map[string]any{"ref": r.pinned(catalogV1Image)},
		}},
	})
}

func (r *release) pinned(name string) string {
	i := slices.IndexFunc(r.list.Images, func(image Image) bool { return image.Name == name })
	return r.list.Images[i].Pinned()
}

func (r *release) writeObject(name string, object any) error {
	content, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, name), content, 0o644) //nolint:gosec // the object is public
}
