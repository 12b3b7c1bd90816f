package config

import (
	"reflect"
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

func TestATableWithoutSectionsIsRefused(t *testing.T) {
	for _, text := range []string{"connection", "database/", "/connection", "database/connection sql"} {
		if _, err := ParseOptions("# first\n" + text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
