package nova

import (
	"fmt"
	"regexp"

	"asterism.dev/lib/common/workload"
)

// Upkeep moves the rows that were deleted archiveAfter days ago into the shadow tables of each cell,
// and then deletes those that were deleted purgeAfter days ago, unless purgeAfter is nil. Every run
// has another name.
func Upkeep(run string, batch, archiveAfter int32, purgeAfter *int32) workload.Task {
	// nova-manage archives every row if --before is empty: a date that fails must end the script.
	// Its exit codes are for scripts, but 1 is also that of Python.
	const script = `
began=$(date +%s)
daysAgo() { date -u -d "@$((began - $1 * 86400))" '+%Y-%m-%d %H:%M:%S'; }
db() {
  code=0
  nova-manage db "$@" --all-cells --verbose >/tmp/output 2>/tmp/errors || code=$?
}
failed() { cat /tmp/output; cat /tmp/errors >&2; exit "$code"; }
sum() { awk '{ n += $1 } END { print n + 0 }'; }

before=$(daysAgo "$2")
db archive_deleted_rows --until-complete --max_rows "$1" --before "$before"
case $code in
0) ;; # nothing was archived
1) grep -q 'Number of Rows Archived' /tmp/output || failed ;;
*) failed ;;
esac
result="archived $(cut -s -d '|' -f 3 /tmp/output | sum) rows"

if [ -n "$3" ]; then
  before=$(daysAgo "$3")
  db purge --before "$before"
  case $code in
  0 | 3) ;; # 3: nothing was purged
  *) failed ;;
  esac
  result="$result, purged $(sed -n 's/.*Deleted \([0-9]*\) rows from .*/\1/p' /tmp/output | sum) rows"
fi
printf '%s, %d s' "$result" $(($(date +%s) - began)) > /dev/termination-log`
	arguments := []string{fmt.Sprint(batch), fmt.Sprint(archiveAfter), ""}
	if purgeAfter != nil {
		arguments[2] = fmt.Sprint(*purgeAfter)
	}
	return workload.Task{
		Purpose: "archive", Script: script, Arguments: arguments, Depends: append([]string{run, script}, arguments...),
		// A run that is killed between the databases of a cell and of the API leaves rows in the latter.
		Uninterrupted: true, Deadline: longDeadline,
	}
}

var upkeepPattern = regexp.MustCompile(`^archived \d{1,20} rows(, purged \d{1,20} rows)?, \d{1,10} s$`)

// ParseUpkeep reads the result of Upkeep, "" if it is not one. The result is not trusted, because
// the user chooses the image.
func ParseUpkeep(result string) string { return upkeepPattern.FindString(result) }
