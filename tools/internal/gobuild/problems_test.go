package gobuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProblemsAreTheErrorsOfABuild(t *testing.T) {
	const output = `go: downloading k8s.io/api v0.37.2
internal/cpu
k8s.io/client-go/kubernetes
# asterism.dev/tools/demo
demo/main.go:3:7: undefined: x
	have (number)
go: k8s.io/api@v0.37.2: Get "https://proxy.example": no route to host
k8s.io/kubernetes/pkg/kubelet
`
	const want = `# asterism.dev/tools/demo
demo/main.go:3:7: undefined: x
	have (number)
go: k8s.io/api@v0.37.2: Get "https://proxy.example": no route to host
`
	if got := Problems(output); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestVerboseBuildNamesThePackage(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.dev/program\n", "main.go": "package main\n\n// " + folder + " makes the program a new one.\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, err := Program{Dir: folder, Output: filepath.Join(folder, "program"), Verbose: true}.Command(t.Context()).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(output), "example.dev/program\n") {
		t.Errorf("got %q, %v", output, err)
	}
}
