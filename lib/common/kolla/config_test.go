package kolla_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"asterism.dev/lib/common/kolla"
)

// valid is a Config with every field.
func valid() kolla.Config {
	return kolla.Config{
		Command: []string{"/usr/bin/thing-agent", "--config-file", "/etc/thing/thing.conf"},
		Files: []kolla.File{
			{Source: "/var/lib/kolla/config_files/thing.conf", Dest: "/etc/thing/thing.conf", Owner: "thing:thing", Perm: "0600"},
			{Source: "/var/lib/kolla/config_files/src/*", Dest: "/", Merge: true, PreserveProperties: true},
			{Source: "/var/lib/kolla/config_files/policy.yaml", Dest: "/etc/thing/", Owner: "thing", Perm: "0640", Optional: true},
		},
		Permissions: []kolla.Permission{
			{Path: "/var/lib/thing", Owner: "thing:thing", Recurse: true},
			{Path: "/var/log/thing/*.log", Owner: "root:thing", Perm: "0660"},
		},
	}
}

func TestJSONHasTheKeysOfKolla(t *testing.T) {
	g := NewWithT(t)
	written, err := valid().JSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(MatchJSON(`{
		"command": "/usr/bin/thing-agent --config-file /etc/thing/thing.conf",
		"config_files": [
			{"source": "/var/lib/kolla/config_files/thing.conf", "dest": "/etc/thing/thing.conf", "owner": "thing:thing", "perm": "0600"},
			{"source": "/var/lib/kolla/config_files/src/*", "dest": "/", "merge": true, "preserve_properties": true},
			{"source": "/var/lib/kolla/config_files/policy.yaml", "dest": "/etc/thing/", "owner": "thing", "perm": "0640", "optional": true}
		],
		"permissions": [
			{"path": "/var/lib/thing", "owner": "thing:thing", "recurse": true},
			{"path": "/var/log/thing/*.log", "owner": "root:thing", "perm": "0660"}
		]
	}`))
	alone, err := kolla.Config{Command: []string{"sleep", "1&2<3"}}.JSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(alone).To(Equal("{\n  \"command\": \"sleep 1&2<3\"\n}\n"))
}

// Each entry breaks one rule. A Config of a stricter rule is read by kolla as it is meant.
func TestWhatKollaRefusesOrReadsDifferentlyIsAnError(t *testing.T) {
	file := func(change func(*kolla.File)) kolla.Config {
		config := valid()
		change(&config.Files[0])
		return config
	}
	permission := func(change func(*kolla.Permission)) kolla.Config {
		config := valid()
		change(&config.Permissions[1])
		return config
	}
	command := func(words ...string) kolla.Config { return kolla.Config{Command: words} }
	for name, test := range map[string]struct {
		config   kolla.Config
		message  string
		stricter bool
	}{
		"no command":                     {command(), "command: the command is required", false},
		"an empty word":                  {command("thing-agent", ""), "command: a word is empty", false},
		"a word with a space":            {command("sh", "-c", "exec thing-agent"), `command: the word "exec thing-agent" has white space`, false},
		"a word with a line break":       {command("sh", "a\nb"), `the word "a\nb" has white space`, false},
		"a pattern in the command":       {command("ls", "/etc/*"), `the word "/etc/*" has one of *?[`, false},
		"an option of exec":              {command("-a", "thing"), `the program "-a" begins with -`, false},
		"no source":                      {file(func(f *kolla.File) { f.Source = "" }), `config_files[0]: source "" is no absolute path`, false},
		"a relative source":              {file(func(f *kolla.File) { f.Source = "thing.conf" }), `config_files[0]: source "thing.conf" is no absolute path`, false},
		"no dest":                        {file(func(f *kolla.File) { f.Dest = "" }), `config_files[0]: dest "" is no absolute path`, false},
		"several sources of one file":    {file(func(f *kolla.File) { f.Source = "/src/*.conf" }), "source /src/*.conf is a pattern, and dest /etc/thing/thing.conf is one file", true},
		"a dest that is the source":      {file(func(f *kolla.File) { f.Dest = f.Source }), "contains source /var/lib/kolla/config_files/thing.conf: dest is deleted", false},
		"a dest in which the source is":  {file(func(f *kolla.File) { f.Source, f.Dest = "/srv/a/b", "/srv/a" }), "dest /srv/a contains source /srv/a/b", false},
		"a dest that kolla needs":        {file(func(f *kolla.File) { f.Source, f.Dest = "/srv/var", "/" }), "dest / contains /var/lib/kolla/config_files", false},
		"no owner":                       {file(func(f *kolla.File) { f.Owner = "" }), "config_files[0]: owner and perm are required, or preserve_properties", false},
		"no perm":                        {file(func(f *kolla.File) { f.Perm = "" }), "config_files[0]: owner and perm are required, or preserve_properties", false},
		"properties that are stated too": {file(func(f *kolla.File) { f.PreserveProperties = true }), "owner and perm have no effect with preserve_properties", true},
		"an owner by number":             {file(func(f *kolla.File) { f.Owner = "42436:42436" }), `owner "42436:42436" is neither`, false},
		"an owner of three":              {file(func(f *kolla.File) { f.Owner = "a:b:c" }), `owner "a:b:c" is neither`, false},
		"an owner without a group":       {file(func(f *kolla.File) { f.Owner = "thing:" }), `owner "thing:" is neither`, true},
		"a decimal mode":                 {file(func(f *kolla.File) { f.Perm = "644" }), `perm "644" is not of four octal digits`, false},
		"a mode of five digits":          {file(func(f *kolla.File) { f.Perm = "00644" }), `perm "00644" is not of four octal digits`, false},
		"a mode with a sticky bit":       {file(func(f *kolla.File) { f.Perm = "1777" }), `perm "1777" is not of four octal digits`, false},
		"a mode that is not octal":       {file(func(f *kolla.File) { f.Perm = "0888" }), `perm "0888" is not of four octal digits`, false},
		"a mode that --check refuses":    {file(func(f *kolla.File) { f.Perm = "0o644" }), `perm "0o644" is not of four octal digits`, true},
		"a permission without a path":    {permission(func(p *kolla.Permission) { p.Path = "" }), `permissions[1]: path "" is no absolute path`, false},
		"a permission without an owner":  {permission(func(p *kolla.Permission) { p.Owner = "" }), "permissions[1]: owner is required", false},
		"a permission by number":         {permission(func(p *kolla.Permission) { p.Owner = "0" }), `permissions[1]: owner "0" is neither`, false},
		"a permission of a decimal mode": {permission(func(p *kolla.Permission) { p.Perm = "660" }), `permissions[1]: perm "660" is not`, false},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := test.config.JSON()
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("the error is %v, want %q", err, test.message)
			}
			if written != "" {
				t.Errorf("wrote %s", written)
			}
			if problem := misread(t, test.config, unchecked(t, test.config)); (problem == "") != test.stricter {
				t.Errorf("kolla's reading: %q", problem)
			}
		})
	}
}

func TestKollaReadsWhatIsWritten(t *testing.T) {
	written, err := valid().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if problem := misread(t, valid(), written); problem != "" {
		t.Error(problem)
	}
}

// unchecked returns config.json without the check of the rules.
func unchecked(t *testing.T, config kolla.Config) string {
	t.Helper()
	written, err := json.Marshal(map[string]any{
		"command": strings.Join(config.Command, " "), "config_files": config.Files, "permissions": config.Permissions,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// misread returns the first difference between a Config and the reading of config.json in a
// container, "" for none.
func misread(t *testing.T, config kolla.Config, written string) string {
	t.Helper()
	r := reader{root: t.TempDir(), users: []string{"root", "thing"}, set: map[string]string{}}
	for _, at := range []string{"/var/lib/kolla/config_files/thing.conf", "/var/lib/kolla/config_files/src/a", "/src/a.conf", "/srv/a/b", "/srv/var/x", "/etc/passwd", "/var/log/thing/a.log"} {
		if err := os.MkdirAll(filepath.Dir(r.root+at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.root+at, []byte(at), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words, err := r.read(written)
	switch {
	case err != nil:
		return err.Error()
	case !slices.Equal(words, config.Command):
		return "the command is " + strings.Join(words, "|")
	}
	return r.difference(config)
}
