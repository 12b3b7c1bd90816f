package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const python = "/usr/bin/python3"

// question is the input of testdata/oslo.py, answer its output.
type question struct {
	Registered []registeredOption `json:"registered"`
	Scripts    string             `json:"scripts"`
	Cases      [][]string         `json:"cases,omitempty"`
	First      bool               `json:"first"`
	Snippets   []string           `json:"snippets,omitempty"`
	Literals   literals           `json:"literals"`
	Names      []string           `json:"names"`
}

type literals struct {
	Text  string   `json:"text"`
	Names []string `json:"names"`
}

type answer struct {
	Failures []struct {
		Case int    `json:"case"`
		Text string `json:"text"`
	} `json:"failures"`
	Accepted []bool   `json:"accepted"`
	Literals []string `json:"literals"`
	Secret   []string `json:"secret"`
}

var needsOslo = regexp.MustCompile(`(ModuleNotFound|Import)Error: .*oslo_config`)

// ask runs the real oslo.config, which must be installed: the tests compare this package with
// it.
func ask(t *testing.T, q question) answer {
	t.Helper()
	if q.Scripts == "" {
		q.Scripts = writeScripts(t, Scripts(slices.Concat(DatabaseOptions("api_database"), AuthOptions("inventory"), testOptions)...))
	}
	q.Registered = registeredOptions()
	input, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var output, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), python, "testdata/oslo.py")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, &stderr
	if err := command.Run(); errors.Is(err, fs.ErrNotExist) || needsOslo.MatchString(stderr.String()) {
		t.Fatalf("comparing with the real oslo.config needs it; type: apt-get install -y python3-oslo.config\n%v\n%s", err, stderr.String())
	} else if err != nil {
		t.Fatalf("oslo.py: %v\n%s", err, stderr.String())
	}
	var a answer
	if err := json.Unmarshal(output.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func writeScripts(t *testing.T, data map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fixedSeed makes the generated cases the same in each run, so that a rare mistake of long ago
// fails no unrelated change.
const fixedSeed = 20260101

// seeded returns the generator of this run. The number CONFIG_SEED makes other cases; a failure
// prints it.
func seeded(t *testing.T) *generator {
	t.Helper()
	seed := uint64(fixedSeed)
	if given := os.Getenv("CONFIG_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("CONFIG_SEED: %v", err)
		}
	}
	t.Logf("CONFIG_SEED=%d", seed)
	return newGenerator(seed)
}

func generatedCases(t *testing.T, g *generator, fallback int) [][]string {
	t.Helper()
	count := fallback
	if given := os.Getenv("CONFIG_CASES"); given != "" {
		var err error
		if count, err = strconv.Atoi(given); err != nil {
			t.Fatalf("CONFIG_CASES: %v", err)
		}
	}
	cases := make([][]string, count)
	for i := range cases {
		cases[i] = g.Case()
	}
	return cases
}

func TestEffectiveViewIsWhatOsloConfigReads(t *testing.T) {
	g := seeded(t)
	cases := generatedCases(t, g, 2000)
	start := time.Now()
	failures := ask(t, question{Cases: cases}).Failures
	t.Logf("compared in %v; cases with:\n%s", time.Since(start).Round(time.Millisecond), g)
	for _, f := range failures[:min(len(failures), 10)] {
		t.Errorf("case %d: %s\n%s", f.Case, f.Text, show(cases[f.Case]))
	}
	if len(failures) > 0 {
		t.Errorf("%d differences", len(failures))
	}
	for _, feature := range []string{
		"deprecated name", "deprecated name, then the current one", "multi-valued option", "odd section spelling",
		"CRLF", "BOM", "continuation line", "comment or blank line", "a section twice", "value: quotes", "value: $",
		"value: unicode", "unknown option", "option of the command line", "what oslo.config refuses",
	} {
		if g.Features[feature] == 0 {
			t.Errorf("no case had: %s", feature)
		}
	}
}

func show(parts []string) string {
	var out strings.Builder
	for i, name := range []string{DefaultsPart, ConnectionsPart, CustomPart} {
		fmt.Fprintf(&out, "--- %s\n%q\n", name, parts[i])
	}
	return out.String()
}

// The comparison must find each of these mistakes in merge-config.
func TestWrongViewsAreNoticed(t *testing.T) {
	g := newGenerator(1)
	cases := generatedCases(t, g, 150)
	for name, change := range map[string][2]string{
		"current name does not win in its file":   {"for name in reversed(option.names)", "for name in option.names"},
		"former names of all parts before others": {"for part in parts for name in reversed(option.names)\n", "for name in reversed(option.names) for part in parts\n"},
		"first part wins":                         {"counts = multi or i == len(settings) - 1", "counts = multi or i == 0"},
		"sections compared exactly":               {"return section if section == \"DEFAULT\" else section.lower()", "return section"},
		"[default] is [DEFAULT]":                  {"return section if section == \"DEFAULT\" else section.lower()", "return \"DEFAULT\" if section.lower() == \"default\" else section.lower()"},
		"multi-valued options replaced":           {"lines(settings, option.multi,", "lines(settings, False,"},
		"quotes kept":                             {"value = value[1:-1]", "pass"},
		"continuation dropped":                    {`last.value + "\n" + line.lstrip()`, "last.value"},
		"values not quoted again":                 {"if quoted or first != first.strip():", "if False:"},
		"colon ignored":                           {`(line.find("="), line.find(":"))`, `(line.find("="),)`},
		"indented lines ignored":                  {`refuse("is indented`, `continue; refuse("is indented`},
		"secret shown":                            {`value = "***" if is_secret`, `value = literal(line.setting.value) if is_secret`},
		"URL shown":                               {"or URL_WITH_USER.search(setting.value)", ""},
		"overridden lines left out":               {"for line in view[name]:", "for line in (l for l in view[name] if l.counts):"},
		"origin of the first":                     {"line.setting.part, line.note", "view[name][0].setting.part, line.note"},
		"former names shown as they are":          {"if name not in current and name not in former:", "if name not in current:"},
	} {
		t.Run(name, func(t *testing.T) {
			scripts := Scripts(slices.Concat(DatabaseOptions("api_database"), AuthOptions("inventory"), testOptions)...)
			wrong := strings.ReplaceAll(scripts[MergeConfig], change[0], change[1])
			if wrong == scripts[MergeConfig] {
				t.Fatalf("merge-config has no %q", change[0])
			}
			scripts[MergeConfig] = wrong
			if len(ask(t, question{Cases: cases, First: true, Scripts: writeScripts(t, scripts)}).Failures) == 0 {
				t.Error("not noticed")
			}
		})
	}
}

func TestSnippetsAreAcceptedExactlyWhenOsloConfigParsesThem(t *testing.T) {
	g := seeded(t)
	var snippets []string
	for _, parts := range generatedCases(t, g, 2000) {
		snippets = append(snippets, parts[0], strings.Join(g.broken(strings.Split(parts[1], "\n")), "\n"))
	}
	refused, answers := 0, ask(t, question{Snippets: snippets}).Accepted
	if len(answers) != len(snippets) {
		t.Fatalf("%d of %d snippets are answered", len(answers), len(snippets))
	}
	for i, accepted := range answers {
		err := CheckSnippet(snippets[i])
		if (err == nil) != accepted {
			t.Errorf("oslo.config accepts: %v, CheckSnippet: %v, of\n%q", accepted, err, snippets[i])
		}
		if err != nil {
			refused++
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
	t.Logf("%d snippets, of which %d are refused", len(snippets), refused)
	if refused < len(snippets)/4 || refused > len(snippets)*3/4 {
		t.Errorf("%d of %d were refused: the generator is lopsided", refused, len(snippets))
	}
}

func TestValuesAreReadBackLiterally(t *testing.T) {
	g := seeded(t)
	values := []string{canary, "$$", "$my_ip", `"leading`, "trailing ", "'", `"`, `""`, `\$`, `\\$`, "pa$$word", "$admin_token", "", " "}
	for range 2500 {
		values = append(values, g.Literal())
	}
	var sections Sections
	var names []string
	quoted := "[DEFAULT]\n"
	for i, value := range values {
		names = append(names, fmt.Sprintf("option_%d", i), fmt.Sprintf("quoted_%d", i))
		sections.Set("DEFAULT", names[2*i], value)
		quoted += names[2*i+1] + " = " + Quote(value) + "\n"
	}
	text, err := sections.Render()
	if err != nil {
		t.Fatal(err)
	}
	read := ask(t, question{Literals: literals{Text: text + quoted, Names: names}}).Literals
	if len(read) != len(names) {
		t.Fatalf("%d of %d options are read back", len(read), len(names))
	}
	for i, got := range read {
		if got != values[i/2] {
			t.Errorf("%s: %q is read back as %q", names[i], values[i/2], got)
		}
	}
}

func TestSecretNamesAreTheSameInBothLanguages(t *testing.T) {
	secret := []string{
		"password", "admin_password", "connection", "slave_connection", "sql_connection", "transport_url",
		"notification_transport_url", "memcache_secret_key", "metadata_proxy_shared_secret", "fixed_key", "hmac_keys",
		"auth_token", "backend_argument", "ssl_key_password", "host_password", "passphrase", "rbd_secret_uuid",
	}
	open := []string{
		"connection_recycle_time", "service_token_roles", "token_cache_time", "ssl_key_file", "key_pairs", "workers",
		"username", "auth_url", "partition_key", "compass", "keyfile", "max_pool_size", "transport_url_2",
	}
	found := ask(t, question{Names: slices.Concat(secret, open)}).Secret
	if !slices.Equal(found, secret) {
		t.Errorf("merge-config hides %v", found)
	}
	for _, name := range secret {
		if !LooksSecret(name) {
			t.Errorf("%s is not hidden", name)
		}
	}
	for _, name := range open {
		if LooksSecret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}
