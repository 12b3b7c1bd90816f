package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestTablesSurviveTheirTextForm(t *testing.T) {
	options := knownTestOptions()
	again, err := ParseOptions("# a comment\n\n" + options.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(options) || len(again) < 60 {
		t.Fatalf("%d options became %d", len(options), len(again))
	}
	for i := range again {
		if again[i].Name != options[i].Name || again[i].Multi != options[i].Multi || !reflect.DeepEqual(again[i].spellings(), options[i].spellings()) {
			t.Errorf("%+v became %+v", options[i], again[i])
		}
	}
}

func TestEmbeddedTablesParse(t *testing.T) {
	for _, text := range []string{osloOptions, databaseOptions, authOptions} {
		if options, err := ParseOptions(text); err != nil || len(options) == 0 {
			t.Errorf("%d options: %v", len(options), err)
		}
	}
}

func TestEveryProjectsTableParsesAndAddsToTheLibraries(t *testing.T) {
	paths, err := projectOptions.ReadDir("options/projects")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d tables: %v", len(paths), err)
	}
	known := map[Spelling]bool{}
	for _, option := range OsloOptions() {
		known[option.spellings()[0]] = true
	}
	for _, path := range paths {
		text, err := projectOptions.ReadFile("options/projects/" + path.Name())
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseOptions(string(text))
		if err != nil {
			t.Errorf("%s: %v", path.Name(), err)
		}
		options := ProjectOptions(strings.TrimSuffix(path.Name(), ".txt"))
		if len(options) == 0 || !reflect.DeepEqual(options, parsed) {
			t.Errorf("%s gives %d options, %d are in it", path.Name(), len(options), len(parsed))
		}
		for _, option := range options {
			if known[option.spellings()[0]] {
				t.Errorf("%s repeats [%s] %s of the libraries", path.Name(), option.Section, option.Name)
			}
			if !option.Multi && len(option.Deprecated) == 0 {
				t.Errorf("%s says nothing of [%s] %s", path.Name(), option.Section, option.Name)
			}
		}
	}
	if options := ProjectOptions("../oslo"); options != nil {
		t.Errorf("a project without a table has %d options", len(options))
	}
}

func TestATableWithoutSectionsIsRefused(t *testing.T) {
	for _, text := range []string{"connection", "database/", "/connection", "database/connection sql"} {
		if _, err := ParseOptions("# first\n" + text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
