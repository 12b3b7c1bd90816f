package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestCheckReadsTheStandardInput(t *testing.T) {
	var out, errOut bytes.Buffer
	env := newTestEnvironment(t, "testdata/manifests", &out, &errOut)
	env.In = strings.NewReader("apiVersion: nova.asterism.dev/v1alpha1\nkind: NovaCell\nmetadata: {name: a}\nspec:\n  apiAccess: Enabled\n")
	const want = "-:5: NovaCell/a: spec.apiAccess is now:\n  apiDatabaseAccess: Enabled\n"
	if code := run(t.Context(), []string{"check", "-"}, env); code != codeNotReady || out.String() != want {
		t.Errorf("exit code %d, %s%s", code, &out, &errOut)
	}
}
