package cell

import (
	"strings"
	"testing"
	"time"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func TestClaims(t *testing.T) {
	const here, elsewhere = "db:3306/one", "db:3306/two"
	cellOf := func(name string, change func(*novav1.NovaCell)) *novav1.NovaCell {
		cell := &novav1.NovaCell{ObjectMeta: named(name)}
		change(cell)
		return cell
	}
	nothing := func(*novav1.NovaCell) {}
	maps := func(cell *novav1.NovaCell) { cell.Status.Database = here }
	accepts := func(location string) func(*novav1.NovaCell) {
		return func(cell *novav1.NovaCell) {
			cell.Status.Completed = []commonv1.CompletedStage{{Stage: novav1.ConditionDatabaseReady, Observed: map[string]string{observedLocation: location}}}
		}
	}
	for _, c := range []struct {
		name    string
		first   string // that claims here, "" for none
		later   time.Duration
		others  []*novav1.NovaCell
		refused bool
	}{
		{name: "an unused database", others: []*novav1.NovaCell{cellOf("first", accepts(elsewhere))}},
		{name: "the database of a mapping", others: []*novav1.NovaCell{cellOf("first", maps)}, refused: true},
		{name: "a database that is accepted and not mapped", others: []*novav1.NovaCell{cellOf("first", accepts(here))}, refused: true},
		{name: "a database that a cell has claimed", first: "first", others: []*novav1.NovaCell{cellOf("first", nothing)}, refused: true},
		{name: "a database that an unseen cell has claimed", first: "first", refused: true},
		{name: "its own database", first: "second", others: []*novav1.NovaCell{cellOf("second", accepts(here))}},
		{name: "a database that was claimed and not accepted", first: "first", later: 2 * time.Minute, others: []*novav1.NovaCell{cellOf("first", accepts(elsewhere))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, now := claims{condition: databases.condition, mapped: databases.mapped}, time.Now()
			if c.first != "" {
				if err := all.take(cellOf(c.first, nothing), here, nil, now); err != nil {
					t.Fatal(err)
				}
			}
			err := all.take(cellOf("second", nothing), here, c.others, now.Add(c.later))
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "in use by NovaCell first") {
				t.Errorf("refused: %v, want %t", err, c.refused)
			}
		})
	}
}
