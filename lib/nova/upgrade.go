package nova

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"asterism.dev/lib/common/workload"
)

// Release is a release of Nova.
type Release struct {
	Version string // for example 31.0.0
	Major   int    // 0: unknown
	// Service is the version that its services have in the databases of cells.
	Service int32
}

// ReadRelease prints the release in an image.
func ReadRelease(image string) workload.Task {
	const script = `python3 -c 'from nova import version; from nova.objects import service
print(version.version_string(), service.SERVICE_VERSION)' > /dev/termination-log`
	return workload.Task{Purpose: "release", Script: script, Depends: []string{image, script}}
}

var (
	versionPattern = regexp.MustCompile(`^([1-9]\d{0,2})\.[0-9A-Za-z.+~-]{1,50}$`)
	resultPattern  = regexp.MustCompile(`^(\S+) ([1-9]\d{0,5})$`)
)

// ParseRelease reads the result of ReadRelease. The result is not trusted, because the user
// chooses the image.
func ParseRelease(result string) (Release, bool) {
	parts := resultPattern.FindStringSubmatch(result)
	if parts == nil || MajorOf(parts[1]) == 0 {
		return Release{}, false
	}
	service, _ := strconv.ParseInt(parts[2], 10, 32)
	return Release{Version: parts[1], Major: MajorOf(parts[1]), Service: int32(service)}, true //nolint:gosec // at most 6 digits
}

// MajorOf returns the number of a release: 31 for 31.0.0, 0 for another text. Within a release,
// schemas and calls do not change.
func MajorOf(version string) int {
	parts := versionPattern.FindStringSubmatch(version)
	if parts == nil {
		return 0
	}
	major, _ := strconv.Atoi(parts[1])
	return major
}

// LatestFrom returns the latest release to which Nova supports an upgrade: the next one, or the
// one after it from a SLURP release, which every second release is since 27 (2023.1).
func LatestFrom(major int) int {
	if major >= 27 && major%2 == 1 {
		return major + 2
	}
	return major + 1
}

// CheckUpgrade runs the check of a new release against the databases of the running one. It fails
// with one line: the names, results and details of the checks that did not succeed, without the
// warnings that are skipped. Then it runs again after a while, and also when one of the texts on
// which it depends changes.
func CheckUpgrade(release string, skipped []string, depends ...string) workload.Task {
	const script = `
code=0
table=$(nova-status upgrade check 2>/tmp/errors) || code=$?
case $code:$table in
0:*) printf passed > /dev/termination-log; exit 0 ;;
1:*'| Check: '* | 2:*'| Check: '*) ;;
*) echo "$table"; cat /tmp/errors >&2; exit "$code" ;; # it has not run to its end
esac
printf '%s\n' "$@" > /tmp/skipped
echo "$table" | sed -n 's/^| \(.*[^ ]\) *|$/\1/p' | awk '
FILENAME != "-" { skipped[$0] = 1; next }
/^Check: / { name = substr($0, 8); shown = 0; next }
/^Result: / { result = substr($0, 9)
  if (result != "Success" && !(result == "Warning" && name in skipped)) { shown = 1; out = out (out ? "; " : "") name " (" result ")" }
  next }
/^Details: / { if (shown && $0 != "Details: None") out = out ": " substr($0, 10); next }
shown { sub(/^ +/, ""); out = out " " $0 }
END { printf "%s", out }
' /tmp/skipped - > /tmp/left
[ -s /tmp/left ] || [ "$code" = 2 ] || { printf passed > /dev/termination-log; exit 0; }
[ -s /tmp/left ] || echo "$table" > /tmp/left
head -c 3000 /tmp/left > /dev/termination-log
exit "$code"`
	return workload.Task{Purpose: "check", Script: script, Arguments: skipped, Depends: slices.Concat([]string{release, script}, skipped, depends)}
}

// longDeadline is more than work on every row of large tables takes.
const longDeadline = 24 * time.Hour

// MigrateData runs the online data migrations of a release in batches, until none are left.
func MigrateData(release string) workload.Task {
	const script = `
code=1
while [ "$code" = 1 ]; do
  code=0
  nova-manage db online_data_migrations --max-count 1000 2>/tmp/errors || code=$?
done
[ "$code" = 0 ] || { cat /tmp/errors >&2; exit "$code"; }
printf done > /dev/termination-log`
	return workload.Task{Purpose: "migrate", Script: script, Depends: []string{release, script}, Deadline: longDeadline}
}
