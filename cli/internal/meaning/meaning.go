// Package meaning has the meaning of each condition and of each reason. Its texts are the
// comments of the condition types in the API packages, and the sections of
// docs/troubleshooting.md: meanings.json is generated from both.
package meaning

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:generate go run ./generate ../../..

//go:embed meanings.json
var generated []byte

// Condition is a condition type of a kind.
type Condition struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Book has all meanings.
type Book struct {
	// Stages are the conditions of the stages of each kind, in their order.
	Stages map[string][]Condition `json:"stages"`
	// Common are the conditions that every kind can have.
	Common []Condition `json:"common"`
	// Reasons are the texts about the reasons of conditions and events.
	Reasons map[string]string `json:"reasons"`
}

// Read returns the generated meanings.
func Read() (Book, error) {
	var book Book
	if err := json.Unmarshal(generated, &book); err != nil {
		return book, fmt.Errorf("meanings.json of this program: %w", err)
	}
	return book, nil
}

// Kinds returns the kinds that have conditions, sorted by name.
func (b Book) Kinds() []string { return slices.Sorted(maps.Keys(b.Stages)) }

// Types returns the condition types of a kind; of all kinds, if kind is empty.
func (b Book) Types(kind string) []string {
	var types []string
	for _, k := range b.Kinds() {
		if kind == "" || k == kind {
			for _, c := range append(slices.Clone(b.Stages[k]), b.Common...) {
				types = append(types, c.Type)
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// Text is a text, and the kinds for which it is true.
type Text struct {
	Kinds []string
	Text  string
}

// Of returns the texts about a condition type, in any case, with its right spelling; of all
// kinds, if kind is empty. It returns none for an unknown type.
func (b Book) Of(kind, condition string) (name string, texts []Text) {
	for _, c := range b.Common {
		if strings.EqualFold(c.Type, condition) {
			return c.Type, []Text{{Text: c.Text}}
		}
	}
	for _, k := range b.Kinds() {
		for _, c := range b.Stages[k] {
			if !strings.EqualFold(c.Type, condition) || kind != "" && k != kind {
				continue
			}
			name = c.Type
			same := slices.IndexFunc(texts, func(t Text) bool { return t.Text == c.Text })
			if same < 0 {
				texts = append(texts, Text{Text: c.Text})
				same = len(texts) - 1
			}
			texts[same].Kinds = append(texts[same].Kinds, k)
		}
	}
	return name, texts
}

// Reason returns the text about a reason, in any case, with its right spelling.
func (b Book) Reason(reason string) (name, text string) {
	for known, text := range b.Reasons {
		if strings.EqualFold(known, reason) {
			return known, text
		}
	}
	return "", ""
}
