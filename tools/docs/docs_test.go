package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPages checks the pages of this repository.
func TestPages(t *testing.T) {
	problems, err := check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestSourcesOfReasons checks that reasons of each form are found in this repository.
func TestSourcesOfReasons(t *testing.T) {
	reasons, _, err := reasonsOf("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{
		"Waiting",             // a constant of the engine
		"LeftBehind",          // a constant that is not exported
		"Ready",               // a literal
		"NamespaceRecreated",  // a constant of an operator's API
		"MessageBusDenied",    // a kind of server with a suffix
		"IdentityUnreachable", // another kind with another suffix
	} {
		if reasons[one] == "" {
			t.Errorf("%s is not found among %v", one, reasons)
		}
	}
}

// repository is a small repository without problems.
var repository = map[string]string{
	"Makefile":                "test: ## Run tests.\n\ttrue\n\t@echo .release/catalogsource.yaml\n",
	"README.md":               "# Top\n\nSee [the page](docs/troubleshooting.md#waiting) and [the folder](docs).\n\n```\nmake test\nkubectl apply -f examples/one.yaml\nkubectl apply -k .demo/default\n```\n",
	"docs/troubleshooting.md": "# Reasons\n\n### Waiting\n\n### DatabaseDenied\n",
	"docs/contracts.md":       "# Contracts\n\n[1](../lib/common/engine/contract01_test.go)\n",
	"examples/one.yaml":       "kind: ConfigMap\n",
	"tools/packaging/internal/install/install.go": "package install\n\nvar Manifests = map[string]string{\"all.yaml\": \"config\"}\n",
	"tools/demo/operators.go":                     "package main\n\nvar installations = []struct{ overlay, folder string }{\n\t{\"default\", \"config/default\"},\n}\n",
	"lib/common/engine/contract01_test.go":        "package engine\n",
	"lib/common/engine/outcome.go":                "package engine\n\nconst ReasonWaiting = \"Waiting\"\n",
	"operators/nova/backend.go": `package backend

func (Database) kind() string { return "Database" }

func failure(kind string, err error) error { return engine.Fail(kind+"Denied", err) }
`,
	"operators/nova/nova_test.go": "package backend\n\nconst ReasonOfTest = \"OfTest\"\n",
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change map[string]string // files
		want   string            // part of the only problem; empty without a problem
	}{
		"nothing": {},
		"an operator that README does not list": {
			change: map[string]string{"operators/nova/go.mod": "module nova\n"},
			want:   "README.md: no row of its table is about the operator nova",
		},
		"an operator that SECURITY lists": {
			change: map[string]string{"operators/nova/go.mod": "module nova\n", "README.md": "[nova](operators/nova)", "SECURITY.md": "| nova-api, nova |  |\n"},
		},
		"an operator that SECURITY does not list": {
			change: map[string]string{"operators/nova/go.mod": "module nova\n", "README.md": "[nova](operators/nova)", "SECURITY.md": "| nova-api | nova |\n"},
			want:   "SECURITY.md: no row of its table is about the operator nova",
		},
		"an operator without its chart": {
			change: map[string]string{"operators/nova/go.mod": "module nova\n", "README.md": "[nova](operators/nova)", "docs/helm.md": "[nova](../operators/nova)"},
			want:   "docs/helm.md: no row of its table is about the operator nova",
		},
		"a dead link": {
			change: map[string]string{"docs/a.md": "[b](b.md)"},
			want:   "docs/a.md: link b.md: docs/b.md does not exist",
		},
		"a dead anchor": {
			change: map[string]string{"docs/a.md": "[b](troubleshooting.md#gone)"},
			want:   "docs/troubleshooting.md has no heading of that anchor",
		},
		"a dead anchor of the page itself": {
			change: map[string]string{"docs/a.md": "[b](#gone)"},
			want:   "docs/a.md has no heading of that anchor",
		},
		"anchors of headings that repeat, with code and punctuation": {
			change: map[string]string{"docs/a.md": "## A `b` (c), d\n\n## Same\n\n## Same\n\n[1](#a-b-c-d) [2](#same) [3](#same-1)"},
		},
		"a link to a file outside the repository": {
			change: map[string]string{"docs/a.md": "[b](../../b.md)"},
			want:   "its target is outside the repository",
		},
		"a link in code": {change: map[string]string{"docs/a.md": "`[b](b.md)`\n\n```\n[b](b.md)\n```\n"}},
		"a link in a table": {
			change: map[string]string{"docs/a.md": "| a |\n|---|\n| [b](b.md) |\n"},
			want:   "docs/b.md does not exist",
		},
		"an address on the network": {change: map[string]string{"docs/a.md": "[b](https://example.org/b.md)"}},
		"a manifest that does not exist": {
			change: map[string]string{"docs/a.md": "```sh\nkubectl apply -n x \\\n  -f one.yaml\n```"},
			want:   "one.yaml does not exist",
		},
		"a manifest in the page's folder": {change: map[string]string{"examples/a.md": "```sh\nkubectl apply -f one.yaml\n```"}},
		"a manifest that a command of the page writes": {
			change: map[string]string{"docs/a.md": "```sh\nkubectl get cp -o yaml > saved.yaml\nkubectl apply -f saved.yaml\nkubectl apply -f -\n```"},
		},
		"a script that does not exist": {
			change: map[string]string{"docs/a.md": "    examples/run now\n"},
			want:   "examples/run does not exist",
		},
		"a manifest of a release": {change: map[string]string{"docs/a.md": "```\nkubectl apply -f .release/dist/all.yaml\n```"}},
		"a manifest that no release has": {
			change: map[string]string{"docs/a.md": "```\nkubectl apply -f .release/dist/other.yaml\n```"},
			want:   "dist/other.yaml does not exist",
		},
		"an installation that is not written": {
			change: map[string]string{"docs/a.md": "```\nkubectl apply -k .demo/other\n```"},
			want:   ".demo/other does not exist",
		},
		"a target that does not exist": {
			change: map[string]string{"docs/a.md": "```\nmake A=b tets # what\n```"},
			want:   "make tets does not exist",
		},
		"YAML": {change: map[string]string{"docs/a.md": "```yaml\npath: examples/none\n```"}},
		"a reason without an entry": {
			change: map[string]string{"lib/common/engine/other.go": "package engine\n\nconst reasonNew = \"New\"\n"},
			want:   `no heading "New", which is a reason in lib/common/engine/other.go`,
		},
		"a literal without an entry": {
			change: map[string]string{"operators/nova/other.go": "package nova\n\nvar err = engine.WaitAs(\"New\", \"text\")\n"},
			want:   `no heading "New"`,
		},
		"a kind without an entry": {
			change: map[string]string{"operators/nova/other.go": "package backend\n\nfunc (Bus) kind() string { return \"Bus\" }\n"},
			want:   `no heading "BusDenied"`,
		},
		"a reason that is not a constant": {
			change: map[string]string{"operators/nova/other.go": "package nova\n\nfunc f(text string) error { return engine.Stop(text, \"text\") }\n"},
			want:   "not a constant",
		},
		"an entry without a reason": {
			change: map[string]string{"docs/troubleshooting.md": repository["docs/troubleshooting.md"] + "\n### Old\n"},
			want:   `heading "Old" is not a reason`,
		},
		"tests that exist": {
			change: map[string]string{"docs/a.md": "`TestA`, e2e \"A b\"", "lib/a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n", "test/e2e/b_test.go": "var _ = Describe(\"A b\", func() {})\n"},
		},
		"a test that does not exist": {
			change: map[string]string{"docs/a.md": "`TestA`", "lib/a_test.go": "package a\n\nfunc TestAB(t *testing.T) {}\n"},
			want:   "docs/a.md: there is no test `TestA`",
		},
		"a container of specs that does not exist": {
			change: map[string]string{"docs/a.md": "e2e \"A b\"", "test/e2e/b_test.go": "var _ = Describe(\"A\", func() {})\n"},
			want:   `docs/a.md: there is no test e2e "A b"`,
		},
		"a contract without a link": {
			change: map[string]string{"lib/common/engine/contract02_test.go": "package engine\n"},
			want:   "docs/contracts.md: no link to ../lib/common/engine/contract02_test.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := check(write(t, test.change))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}

// write writes the repository with changes to a folder.
func write(t *testing.T, change map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, files := range []map[string]string{repository, change} {
		for name, content := range files {
			path := filepath.Join(root, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// TestSiteHasEveryPage checks a small site: a page that is not rendered, and one that no link
// of the navigation reaches, are problems.
func TestSiteHasEveryPage(t *testing.T) {
	site := t.TempDir()
	for name, content := range map[string]string{
		"index.html":     `<meta name="source" content="README.md"><aside><a href="/a/b/">b</a></aside><a href="/c/">c</a>`,
		"a/b/index.html": `<meta name="source" content="docs/b.md">`,
		"c/index.html":   `<meta name="source" content="docs/c.md">`,
	} {
		path := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := pages{}
	for _, path := range []string{"README.md", "docs/b.md", "docs/c.md", "docs/d.md"} {
		all[path] = &page{path: path}
	}
	got, err := checkSite(site, all)
	want := []string{"docs/c.md: no link in the navigation of the site", "docs/d.md: not on the site: add it to tools/docs/site/hugo.toml"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestInstallations checks that the demo's installations are found.
func TestInstallations(t *testing.T) {
	names, err := namesIn("../..", "tools/demo/operators.go", overlay)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "control-plane") {
		t.Errorf("control-plane is not among %v", names)
	}
}
