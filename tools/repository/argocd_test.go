package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// healthChecks returns the health checks that Argo CD gets, by the suffix of their keys.
func healthChecks(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "config", "argocd", "health.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(content, &patch); err != nil {
		t.Fatal(err)
	}
	checks := map[string]string{}
	for key, script := range patch.Data {
		kind, ok := strings.CutPrefix(key, "resource.customizations.health.")
		if !ok {
			t.Errorf("Argo CD does not read %s", key)
		}
		checks[kind] = script
	}
	return checks
}

// Without a health check, Argo CD takes an object of another project's kind for healthy.
func TestArgoCDKnowsEveryKind(t *testing.T) {
	checks := healthChecks(t)
	paths, err := filepath.Glob(filepath.Join(root, "operators", "*", "config", "crd", "*_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		kind := crd.Spec.Group + "_" + crd.Spec.Names.Kind
		if checks[kind] == "" {
			t.Errorf("config/argocd/health.yaml lacks %s", kind)
		}
		delete(checks, kind)
	}
	for kind := range checks {
		t.Errorf("config/argocd/health.yaml has %s, which does not exist", kind)
	}
}

func TestHealthForArgoCD(t *testing.T) {
	script := healthChecks(t)["asterism.dev_ControlPlane"]
	const ready = `{type: Ready, status: "True", message: ""}`
	for name, c := range map[string]struct{ object, status, message string }{
		"new":            {`{metadata: {generation: 1}}`, "Progressing", "the operator has not reported on this generation"},
		"no conditions":  {`{metadata: {generation: 1}, status: {observedGeneration: 1}}`, "Progressing", "the operator has not reported on this generation"},
		"ready":          {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Available, status: "True"}, ` + ready + `]}}`, "Healthy", ""},
		"changed":        {`{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [` + ready + `]}}`, "Progressing", "the operator has not reported on this generation"},
		"progressing":    {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", message: "a Job runs"}]}}`, "Progressing", "a Job runs"},
		"stalled":        {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", message: "no"}, {type: Stalled, status: "True", message: "Secret x lacks key y"}]}}`, "Degraded", "Secret x lacks key y"},
		"stalled before": {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "False", message: "was"}, ` + ready + `]}}`, "Healthy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(c.object), &object); err != nil {
				t.Fatal(err)
			}
			state := lua.NewState()
			defer state.Close()
			state.SetGlobal("obj", luaOf(state, object))
			if err := state.DoString(script); err != nil {
				t.Fatal(err)
			}
			health, ok := state.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("the script returns %s", state.Get(-1))
			}
			if status, message := health.RawGetString("status").String(), health.RawGetString("message").String(); status != c.status || message != c.message {
				t.Errorf("%s %q, want %s %q", status, message, c.status, c.message)
			}
		})
	}
}

// luaOf returns a value of JSON as Argo CD gives it to a script.
func luaOf(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, entry := range v {
			table.RawSetString(key, luaOf(state, entry))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, entry := range v {
			table.Append(luaOf(state, entry))
		}
		return table
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}
