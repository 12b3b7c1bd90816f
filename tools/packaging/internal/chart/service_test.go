package chart

import "testing"

func TestSummaryOfAFieldDoesNotRepeatItsName(t *testing.T) {
	for meaning, want := range map[string]string{
		"api has settings.":                         "has settings",
		"api is the number of pods. Default: 1.":    "the number of pods",
		"api are files.":                            "files",
		"api names the Secret. Required keys: a.":   "names the Secret",
		"api of the volume: a, b.":                  "api of the volume: a, b",
		"api in which pods run":                     "api in which pods run",
		"apiVersion is another name":                "apiVersion is another name",
		"The name is elsewhere. The rest is gone. ": "The name is elsewhere",
	} {
		if got := (field{name: "api", meaning: meaning}).summary(); got != want {
			t.Errorf("%q: got %q, want %q", meaning, got, want)
		}
	}
}
