package main

import (
	"slices"
	"strings"
	"testing"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

const repository = "../../../.."

func TestConditionsAreThoseOfTheAPI(t *testing.T) {
	book, err := read(repository)
	if err != nil {
		t.Fatal(err)
	}
	if got := book.Kinds(); len(got) != len(conditions) {
		t.Errorf("kinds %v, want those of the operators", got)
	}
	for kind, want := range conditions {
		var got []string
		for _, c := range book.Stages[kind] {
			got = append(got, c.Type)
			if !strings.HasPrefix(c.Text, c.Type+" ") || strings.Contains(c.Text, "Condition"+c.Type) {
				t.Errorf("%s: the text of %s is %q", kind, c.Type, c.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if got := book.Common; len(got) != 3 || got[0].Type != commonv1.ConditionReady || got[0].Text == "" {
		t.Errorf("common conditions %v", got)
	}
}

func TestReasonsHaveNoMarkdown(t *testing.T) {
	reasons, err := readReasons(repository)
	if err != nil {
		t.Fatal(err)
	}
	for reason, text := range reasons {
		for _, sign := range []string{"](", "```", "|--", "\n| "} {
			if strings.Contains(text, sign) {
				t.Errorf("%s contains %q:\n%s", reason, sign, text)
			}
		}
		if text == "" {
			t.Errorf("%s has no text", reason)
		}
	}
	if !strings.Contains(reasons["JobFailed"], "\n    kubectl get jobs") {
		t.Errorf("commands are not indented:\n%s", reasons["JobFailed"])
	}
}
