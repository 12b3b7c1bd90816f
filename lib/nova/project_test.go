package nova

import (
	"testing"

	"asterism.dev/lib/common/config"
)

func TestOptionsParseAndAddToTheLibraries(t *testing.T) {
	parsed, err := config.ParseOptions(options)
	if err != nil {
		t.Fatal(err)
	}
	if known := Project().Options; len(known) != len(parsed)+len(config.AuthOptions(accounts...)) || len(parsed) < 60 {
		t.Fatalf("%d options are known, %d are in the table", len(known), len(parsed))
	}
	spelling := func(o config.Option) config.Spelling { return config.Spelling{Section: o.Section, Name: o.Name} }
	ofLibraries := map[config.Spelling]bool{}
	for _, option := range config.OsloOptions() {
		ofLibraries[spelling(option)] = true
	}
	for _, option := range parsed {
		if ofLibraries[spelling(option)] {
			t.Errorf("%s is in the table of the libraries", spelling(option))
		}
		if !option.Multi && len(option.Deprecated) == 0 {
			t.Errorf("the table says nothing of %s", spelling(option))
		}
	}
}
