package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

func (c *cluster) envFile() string { return filepath.Join(c.dir, "env") }

var envTemplate = template.Must(template.New("env").Funcs(template.FuncMap{"quote": shellQuote}).Parse(
	`# To be sourced by a shell: . {{ quote .File }}
export KUBECONFIG={{ quote .Kubeconfig }}
case ":$PATH:" in
*:{{ quote .Folders }}:*) ;;
*) export PATH={{ quote .Folders }}:"$PATH" ;;
esac
{{- if .Containerd }}
export CONTAINERD_ADDRESS={{ quote .Containerd }} CONTAINERD_NAMESPACE=k8s.io
export NO_PROXY="${NO_PROXY:+$NO_PROXY,}{{ .Direct }}"
export no_proxy="$NO_PROXY"
{{- end }}
`,
))

func (c *cluster) writeEnv() error {
	values := map[string]string{
		"File":       c.envFile(),
		"Kubeconfig": filepath.Join(c.dir, "kubeconfig"),
		"Folders":    strings.Join(c.folders, ":"),
	}
	if c.state.Mode == full {
		values["Containerd"] = containerdSocket
		values["Direct"] = strings.Join([]string{podCIDR, serviceCIDR, domain}, ",")
	}
	content, err := render(envTemplate, values)
	if err != nil {
		return err
	}
	return writeFile(c.envFile(), []byte(content), 0o644)
}

// shellQuote quotes any text as one word of a shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func render(t *template.Template, values any) (string, error) {
	var text strings.Builder
	if err := t.Execute(&text, values); err != nil {
		return "", fmt.Errorf("%s: %w", t.Name(), err)
	}
	return text.String(), nil
}
