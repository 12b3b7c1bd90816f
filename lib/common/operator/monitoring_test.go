package operator_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// monitoring has the alerts, their tests, and the dashboard.
const monitoring = "../../../config/monitoring/"

// rule is an alert of Prometheus.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// rules returns the alerts, and the groups of rules as Prometheus reads them.
func rules(t *testing.T) (alerts []rule, groups []byte) {
	t.Helper()
	var resource struct {
		Spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	var untyped map[string]any
	for _, into := range []any{&resource, &untyped} {
		if err := yaml.Unmarshal(content(t, monitoring+"rules.yaml"), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range resource.Spec.Groups {
		alerts = append(alerts, group.Rules...)
	}
	if len(alerts) == 0 {
		t.Fatal("no alerts are found")
	}
	groups, err := yaml.Marshal(untyped["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return alerts, groups
}

// dashboard returns the expressions of the dashboard, by panel.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(content(t, monitoring+"dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	expressions := map[string][]string{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			expressions[panel.Title] = append(expressions[panel.Title], target.Expr)
		}
	}
	if len(expressions) == 0 {
		t.Fatal("the dashboard has no expressions")
	}
	return expressions
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	found, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// promtool runs a command of promtool on files, which it writes to a folder.
func promtool(t *testing.T, files map[string][]byte, command ...string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "promtool", command...) //nolint:gosec // the arguments are those of this file
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("promtool %s (of Debian's package prometheus): %v\n%s", strings.Join(command, " "), err, out)
	}
}

func TestAlerts(t *testing.T) {
	alerts, groups := rules(t)
	tests := content(t, monitoring+"rules_test.yaml")
	promtool(t, map[string][]byte{"rules.yaml": groups, "rules_test.yaml": tests}, "test", "rules", "rules_test.yaml")
	page := string(content(t, "../../../docs/troubleshooting.md"))
	for _, alert := range alerts {
		if !strings.Contains(string(tests), "alertname: "+alert.Alert+"\n") {
			t.Errorf("rules_test.yaml has no test of %s", alert.Alert)
		}
		if !strings.Contains(page, "\n#### "+alert.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no section %s", alert.Alert)
		}
		if url := alert.Annotations["runbook_url"]; !strings.HasSuffix(url, "/troubleshooting#"+strings.ToLower(alert.Alert)) {
			t.Errorf("the runbook_url of %s is %q", alert.Alert, url)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^#### (Asterism\w+)$`).FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(alerts, func(alert rule) bool { return alert.Alert == section[1] }) {
			t.Errorf("docs/troubleshooting.md has a section %s, which is no alert", section[1])
		}
	}
}

func TestDashboardParses(t *testing.T) {
	var recorded []map[string]string
	for _, expressions := range dashboard(t) {
		for _, expression := range expressions {
			recorded = append(recorded, map[string]string{"record": "panel", "expr": expression})
		}
	}
	file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": recorded}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, map[string][]byte{"dashboard.yaml": file}, "check", "rules", "--lint=none", "dashboard.yaml")
}

// metricName matches the name of a metric: of an operator, or before a selector or a range.
var metricName = regexp.MustCompile(`\b((?:asterism|controller_runtime|workqueue|process|go)_\w+)|\b([a-z_:][\w:]*)[{\[]`)

// TestMetricsOfAlertsAndDashboardExist in the registry that an operator serves, or are written by
// Prometheus itself.
func TestMetricsOfAlertsAndDashboardExist(t *testing.T) {
	registered := registeredMetrics(t)
	expressions := slices.Concat(slices.Collect(maps.Values(dashboard(t)))...)
	alerts, _ := rules(t)
	for _, alert := range alerts {
		expressions = append(expressions, alert.Expr)
	}
	used := map[string]bool{"up": true}
	for _, expression := range expressions {
		for _, found := range metricName.FindAllStringSubmatch(expression, -1) {
			name := found[1] + found[2]
			used[name] = true
			of := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if name != "up" && !registered[name] && !registered[of] {
				t.Errorf("%s has the metric %s, which no operator serves", expression, name)
			}
		}
	}
	if len(used) < 12 {
		t.Fatalf("only %d metrics are found: %v", len(used), used)
	}
}

// registeredMetrics returns the names of all metrics, also of those without a series.
func registeredMetrics(t *testing.T) map[string]bool {
	t.Helper()
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("the registry is a %T", metrics.Registry)
	}
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); registry.Describe(descs) }()
	names, name := map[string]bool{}, regexp.MustCompile(`fqName: "([^"]+)"`)
	for desc := range descs {
		names[name.FindStringSubmatch(desc.String())[1]] = true
	}
	return names
}

// TestMetricsAreDescribed: the page has a row for every metric of the engine, and no other.
func TestMetricsAreDescribed(t *testing.T) {
	page := string(content(t, "../../../docs/guides/monitoring.md"))
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(asterism_\\w+)` \\|").FindAllStringSubmatch(page, -1) {
		described[row[1]] = true
	}
	registered := registeredMetrics(t)
	maps.DeleteFunc(registered, func(name string, _ bool) bool { return !strings.HasPrefix(name, "asterism_") })
	if !maps.Equal(described, registered) {
		t.Errorf("docs/guides/monitoring.md describes %v, and the engine has %v", described, registered)
	}
}
