package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const schema = `
type: object
description: spec is the desired state.
required: [name]
properties:
  name: {type: string, description: name of the cell., minLength: 1, maxLength: 20, pattern: ^a|b$}
  replicas: {type: integer, description: replicas is the number of pods., default: 1, minimum: 0, maximum: 64}
  access: {type: string, description: 'access of the pods. Default: ReadWrite.', default: ReadWrite, enum: [ReadWrite, ReadOnly]}
  files:
    type: array
    description: files are further files.
    maxItems: 16
    items:
      type: object
      properties:
        content: {type: string, description: content of the file.}
      x-kubernetes-validations: [{rule: "true", message: must have content}]
  affinity:
    type: object
    description: affinity of the pods.
    properties:
      nodeAffinity: {type: object}
`

func TestRows(t *testing.T) {
	var object apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(schema), &object); err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"spec", "object", "spec is the desired state."},
		{"spec.access", "`ReadWrite`, `ReadOnly`", "access of the pods. Default: ReadWrite."},
		{"spec.affinity", "object", "affinity of the pods."},
		{"spec.files", "list of object, at most 16 items", "files are further files. Rule: must have content."},
		{"spec.files[].content", "string", "content of the file."},
		{"spec.name", "string, 1 to 20 characters", "name of the cell. **Required.** Pattern: `^a\\|b$`."},
		{"spec.replicas", "integer, 0 to 64", "replicas is the number of pods. Default: 1."},
	}
	if difference := cmp.Diff(want, rows("spec", object, true), cmp.AllowUnexported(row{})); difference != "" {
		t.Error(difference)
	}
}
