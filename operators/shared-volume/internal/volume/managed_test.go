package volume

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// efsPaths are the paths that EFS creates: at most four directories and 100 characters.
var efsPaths = regexp.MustCompile(`^(/[^/.][^/]*){1,4}$`)

// TestDirectories: no two SharedVolumes have the same directory, except namesakes in the same
// namespace, and the longest names fit.
func TestDirectories(t *testing.T) {
	granted := &storagev1.ManagedAccessPoints{RootDirectory: "/" + strings.Repeat("r", 17) + "/" + strings.Repeat("s", 17), Permissions: "0700", MaxPerNamespace: 1}
	seen := map[string]bool{}
	for _, c := range []struct{ namespace, namespaceUID, cluster, name string }{
		{"a", "1", "x", "images"},
		{"a", "2", "x", "images"}, // the namespace was recreated
		{"a", "1", "y", "images"},
		{"a", "1", "x", "pictures"},
		{"b", "3", "x", "images"},
		{strings.Repeat("n", 63), "4", "x", strings.Repeat("m", 253)},
		{strings.Repeat("n", 62) + "o", "5", "x", strings.Repeat("m", 253)},
		{strings.Repeat("n", 63), "4", "x", strings.Repeat("m", 252) + "n"},
	} {
		path := describe(named(c.namespace, c.name, "1"), types.UID(c.namespaceUID), c.cluster, granted).Path
		if !efsPaths.MatchString(path) || len(path) > 100 || seen[path] {
			t.Errorf("%v has the directory %s", c, path)
		}
		seen[path] = true
		if again := describe(named(c.namespace, c.name, "2"), types.UID(c.namespaceUID), c.cluster, granted).Path; again != path {
			t.Errorf("a recreated SharedVolume moves from %s to %s", path, again)
		}
	}
}

// TestOwnersOfFiles: nobody is root, and each namespace has a user of its own.
func TestOwnersOfFiles(t *testing.T) {
	granted := &storagev1.ManagedAccessPoints{}
	first, second := describe(named("a", "b", "1"), "1", "x", granted), describe(named("a", "b", "1"), "2", "x", granted)
	if first.UID < firstUser || first.UID != first.GID || first.UID == second.UID {
		t.Errorf("the owners are %d and %d", first.UID, second.UID)
	}
	granted.PosixUser = &storagev1.PosixUser{UID: 5, GID: 6}
	if given := describe(named("a", "b", "1"), "1", "x", granted); given.UID != 5 || given.GID != 6 {
		t.Errorf("the given owner is %d:%d", given.UID, given.GID)
	}
}
