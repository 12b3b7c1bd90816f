package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// readObjects reads objects of testdata. It sets an owner's UID from its kind and name, so
// that the files stay short.
func readObjects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		document := runtime.RawExtension{}
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(document.Raw); err != nil {
			t.Fatal(err)
		}
		o.SetUID(types.UID(o.GetKind() + "/" + o.GetName()))
		owners := o.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = types.UID(owners[i].Kind + "/" + owners[i].Name)
		}
		o.SetOwnerReferences(owners)
		objects = append(objects, o)
	}
	if len(objects) == 0 {
		t.Fatalf("no object in %s", name)
	}
	return objects
}
