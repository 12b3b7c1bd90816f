package nova

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// manage is a nova-manage whose two commands print what the real ones print, and end with a code.
func manage(archive, purge string) string {
	return `echo "$@" >> "$0.calls"
case $2 in
archive_deleted_rows) ` + archive + ` ;;
purge) ` + purge + ` ;;
esac`
}

const (
	archives = `cat <<'END'
Archiving.....complete
+-------------------------------+-------------------------+
| Table                         | Number of Rows Archived |
+-------------------------------+-------------------------+
| API_DB.instance_mappings      | 2                       |
| cell0.instances               | 1                       |
| cell1.block_device_mapping    | 40                      |
+-------------------------------+-------------------------+
END
exit 1`
	archivesNothing = `echo Archiving..complete; echo 'Nothing was archived.'; exit 0`
	purges          = `echo 'Cell 8d0c6a52(cell1): Deleted 3 rows from shadow_instances based on timestamp column deleted_at'
echo 'Cell 8d0c6a52(cell1): Deleted 4 rows from shadow_tags based on timestamp column deleted_at'`
	purgesNothing = `exit 3`
	crash         = `echo 'Traceback (most recent call last):' >&2; echo 'ImportError: no nova' >&2; exit `
)

func TestUpkeep(t *testing.T) {
	days := int32(90)
	never := `echo 'is not called' >&2; exit 9`
	for name, c := range map[string]struct {
		archive, purge string
		purgeAfter     *int32
		code           int
		result         string // its beginning, or a part of the output
	}{
		"archive":                        {archives, never, nil, 0, "archived 43 rows, "},
		"nothing to archive":             {archivesNothing, never, nil, 0, "archived 0 rows, "},
		"archive and purge":              {archives, purges, &days, 0, "archived 43 rows, purged 7 rows, "},
		"nothing at all":                 {archivesNothing, purgesNothing, &days, 0, "archived 0 rows, purged 0 rows, "},
		"a crash with the code of a row": {crash + "1", never, &days, 1, "ImportError: no nova"},
		"no API database":                {"echo 'Failed to connect to API DB'; exit 3", never, &days, 3, "Failed to connect to API DB"},
		"a cell that does not answer":    {"echo Archiving..; echo 'DBConnectionError: refused' >&2; exit 255", never, &days, 255, "DBConnectionError: refused"},
		"bad options of the archive":     {"echo 'Must supply a positive value for max_rows'; exit 2", never, nil, 2, "Must supply"},
		"a date that is not understood":  {"echo 'Invalid value for --before'; exit 4", never, nil, 4, "Invalid value"},
		"a purge that crashes":           {archives, crash + "1", &days, 1, "ImportError: no nova"},
		"a purge without cells":          {archives, "echo 'Unable to get cell list'; exit 4", &days, 4, "Unable to get cell list"},
	} {
		code, result := run(t, Upkeep("", 1000, 30, c.purgeAfter), "nova-manage", manage(c.archive, c.purge))
		if code != c.code || !strings.Contains(result, c.result) {
			t.Errorf("%s: got %d %q, want %d %q", name, code, result, c.code, c.result)
		}
		if parsed := ParseUpkeep(result); (parsed == result) != (code == 0) {
			t.Errorf("%s: the result %q is parsed as %q", name, result, parsed)
		}
	}
}

// TestUpkeepStatesDates: without a date, nova-manage archives every deleted row.
func TestUpkeepStatesDates(t *testing.T) {
	const at = `(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) `
	days := int32(90)
	code, output := run(t, Upkeep("", 500, 30, &days), "nova-manage", manage(archivesNothing, `cat "$0.calls" >&2; exit 7`))
	calls := regexp.MustCompile(`db archive_deleted_rows --until-complete --max_rows 500 --before ` + at + `--all-cells --verbose
db purge --before ` + at + `--all-cells --verbose
`).FindStringSubmatch(output)
	if code != 7 || calls == nil {
		t.Fatalf("got %d %q", code, output)
	}
	for i, days := range []int{30, 90} {
		before, err := time.Parse(time.DateTime, calls[i+1])
		if ago := time.Since(before) - time.Duration(days)*24*time.Hour; err != nil || ago < 0 || ago > time.Hour {
			t.Errorf("the date for %d days is %s (%v)", days, calls[i+1], err)
		}
	}
	// A date that fails in the second call: nova-manage is not there, and is not called.
	const date = `[ -e "$0.called" ] && exit 1; touch "$0.called"; echo 1764158400`
	if code, output := run(t, Upkeep("", 500, 30, nil), "date", date); code != 1 || output != "" {
		t.Errorf("with a date that fails: got %d %q", code, output)
	}
}
