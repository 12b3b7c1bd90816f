package project

import (
	"slices"
	"testing"
)

func TestParentsComeFirst(t *testing.T) {
	operators, err := Operators("../..")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kind := range ParentsFirst(operators) {
		names = append(names, kind.Name)
		if kind.Group == "" {
			t.Errorf("%s has no definition", kind.Name)
		}
		isOfCluster := slices.Contains([]string{"SharedFileSystem", "SharedVolumeDriver", "SharedVolumePolicy"}, kind.Name)
		if kind.Namespaced == isOfCluster {
			t.Errorf("%s has a namespace: %t", kind.Name, kind.Namespaced)
		}
	}
	for parent, child := range map[string]string{"ControlPlane": "Nova", "Nova": "NovaCell", "NovaCell": "NovaConductor"} {
		if before, after := slices.Index(names, parent), slices.Index(names, child); before < 0 || after < before {
			t.Errorf("%s is not before %s: %s", parent, child, names)
		}
	}
}

func TestKindsThatCreateEachOtherAreListedOnce(t *testing.T) {
	kinds := []Kind{
		{Name: "A", Group: "x", Creates: map[string][]string{"x/v1": {"B"}}},
		{Name: "B", Group: "x", Creates: map[string][]string{"x/v1": {"A", "B"}}},
	}
	if got := ParentsFirst([]Operator{{Kinds: kinds}}); len(got) != 2 || got[0].Name == got[1].Name {
		t.Errorf("got %v", got)
	}
}
