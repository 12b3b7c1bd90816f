package apply

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unchanged tells whether another apply of body would change nothing: the last applied body
// has the same hash, and managedFields still lists the owner for every field. When another
// client changes or removes a field, the API server removes the field from the owner's
// entry. Therefore, metadata is sufficient, and no values are compared.
func unchanged(current metav1.Object, owner, bodyHash string, body map[string]any) bool {
	if current.GetAnnotations()[annotationHash] != bodyHash {
		return false
	}
	for _, entry := range current.GetManagedFields() {
		if entry.Manager != owner || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			return false
		}
		return covers(owned, ownable(body))
	}
	return false
}

// ownable returns the fields of a body that server-side apply records in managedFields.
func ownable(body map[string]any) map[string]any {
	want := map[string]any{}
	for key, value := range body {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			want[key] = value
		}
	}
	if metadata, ok := body["metadata"].(map[string]any); ok {
		kept := map[string]any{}
		for _, key := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
			if value, ok := metadata[key]; ok {
				kept[key] = value
			}
		}
		want["metadata"] = kept
	}
	return want
}

// covers tells whether owned, a decoded FieldsV1, records every field that want sets.
func covers(owned map[string]any, want any) bool {
	if len(owned) == 0 {
		return owned != nil // a scalar, or a value that is owned as a whole
	}
	switch want := want.(type) {
	case map[string]any:
		for key, value := range want {
			field, _ := owned["f:"+key].(map[string]any)
			if !covers(field, value) {
				return false
			}
		}
	case []any:
		for _, element := range want {
			if !coversElement(owned, element) {
				return false
			}
		}
	}
	return true
}

// coversElement finds the element in a list that is merged by key ("k:{…}") or is a set
// ("v:…"). The API server has defaulted a merge key that the element lacks: this key
// matches every value.
func coversElement(owned map[string]any, element any) bool {
	for name, field := range owned {
		fields, _ := field.(map[string]any)
		switch {
		case strings.HasPrefix(name, "k:"):
			if matchesKey(name[2:], element) && covers(fields, element) {
				return true
			}
		case strings.HasPrefix(name, "v:"):
			if encoded, err := json.Marshal(element); err == nil && bytes.Equal(encoded, []byte(name[2:])) {
				return true
			}
		}
	}
	return false
}

func matchesKey(encoded string, element any) bool {
	var keys map[string]any
	fields, ok := element.(map[string]any)
	if !ok || json.Unmarshal([]byte(encoded), &keys) != nil {
		return false
	}
	for key, value := range keys {
		if wanted, set := fields[key]; set && Hash(wanted) != Hash(value) {
			return false
		}
	}
	return true
}
