package enginetest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDocumentWithTwoObjectsIsRefused(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	for separator, accepted := range map[string]bool{"---\n": true, "": false} {
		path := filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(path, []byte(secret+separator+secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if objects, err := readDocuments(path); (err == nil) != accepted || accepted && len(objects) != 2 {
			t.Errorf("separator %q: %d objects, %v", separator, len(objects), err)
		}
	}
}
