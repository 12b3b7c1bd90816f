package manifest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestPlaceOfAnOldField(t *testing.T) {
	const text = "---\n# two documents\n---\napiVersion: nova.asterism.dev/v1alpha1\r\nkind: NovaCell\nmetadata: {name: ö}\nspec: {a: ö, apiAccess: Enabled}\n"
	found, objects, err := OldFields([]byte(text))
	if err != nil || objects != 1 || len(found) != 1 {
		t.Fatalf("%d objects, %v, %v", objects, found, err)
	}
	want := OldField{Line: 7, Object: "NovaCell/ö", Path: "spec.apiAccess", Write: "spec: {a: ö, apiDatabaseAccess: Enabled}"}
	if found[0] != want {
		t.Errorf("\n got %+v\nwant %+v", found[0], want)
	}
}

func TestAFieldMovesToItsParent(t *testing.T) {
	const text = "apiVersion: nova.asterism.dev/v1alpha1\nkind: NovaCell\nmetadata: {name: a}\nspec:\n  metadata:\n    secretRef: {name: shared}\n"
	found, _, err := OldFields([]byte(text))
	want := OldField{Line: 6, Object: "NovaCell/a", Path: "spec.metadata.secretRef", Write: "metadataSecretRef: {name: shared} # beside metadata"}
	if err != nil || len(found) != 1 || found[0] != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, found, want)
	}
}

func TestOthersHaveNoOldFields(t *testing.T) {
	for _, text := range []string{
		"", "---\n", "null\n", "a: [1]\n", "- neighbours\n",
		"apiVersion: example.org/v1\nkind: NovaCell\nspec: {apiAccess: Enabled}\n",
		"apiVersion: nova.asterism.dev/v1alpha1\nkind: NovaCompute\nspec: {ironic: {secretRef: {name: a}}}\n",
		"apiVersion: nova.asterism.dev/v1alpha1\nkind: Nova\nspec: {neighbour: 1, cells: {apiAccess: Enabled}, openStackServices: [Cinder]}\n",
		"apiVersion: nova.asterism.dev/v1alpha1\nkind: Nova\nspec: null\n",
	} {
		if found, _, err := OldFields([]byte(text)); err != nil || len(found) > 0 {
			t.Errorf("%q: %v, %v", text, found, err)
		}
	}
}

func TestAliases(t *testing.T) {
	const text = "apiVersion: asterism.dev/v1alpha1\nkind: ControlPlane\nspec:\n  nova:\n    neighbours:\n    - &cinder\n      name: Cinder\n      region: RegionTwo\n    cells:\n    - &cell {name: cell1, apiAccess: Disabled}\n    - *cell\n"
	found, _, err := OldFields([]byte(text))
	if err != nil || len(found) != 4 {
		t.Errorf("%v, %v", found, err)
	}
}

// The page for users has the fields that the command finds.
func TestPageHasEachRename(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("`([^`]*)` \\| `([^`]*)`")
	listed := map[[2]string]bool{}
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		listed[[2]string{last(cells[1]), last(cells[2])}] = true
	}
	for kind, fields := range renames {
		for _, r := range fields {
			if !listed[[2]string{last(r.path), r.name}] {
				t.Errorf("the page lacks %s of %s, which is now %s", r.path, kind, r.name)
			}
		}
	}
}

func last(path string) string {
	return strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
}
