package cell

import "testing"

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		one, other string
		want       bool
	}{
		{"db:3306/cell1", "db:3306/cell1", true},
		{"db:3306/cell1", "db:3306/cell2", false},
		{"db:3306/cell1", "db:3307/cell1", false},
		{"a:5671,b:5671/v", "b:5671,a:5671/v", true},
		{"a:5671,b:5671/v", "c:5671,b:5671/v", true},
		{"a:5671,b:5671/v", "c:5671/v", false},
		{"a:5671/", "a:5671/", true},
		{"", "a:5671/", false},
	} {
		if overlap(c.one, c.other) != c.want || overlap(c.other, c.one) != c.want {
			t.Errorf("%s and %s: want %t", c.one, c.other, c.want)
		}
	}
}
