package records

import "testing"

func TestLocationHasNoPartOfAPassword(t *testing.T) {
	for connection, want := range map[string]string{
		"mysql+pymysql://nova:p%40ss%2F@[2001:db8::1]:3306/nova_cell1?charset=utf8": "[2001:db8::1]:3306/nova_cell1",
		"mysql+pymysql://u:12/x@h:3306/n":                                           "",
		"mysql+pymysql://u:p@h:3306/n%0a%1b[2J":                                     "h:3306/n",
		"{scheme}://{username}:{password}@{hostname}/nova_cell0":                    "",
	} {
		if got := locationIn(connection); got != want {
			t.Errorf("%s: got %q, want %q", connection, got, want)
		}
	}
}
