package nova

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asterism.dev/lib/common/workload"
)

func TestParseRelease(t *testing.T) {
	for result, want := range map[string]Release{
		"31.0.0 68":          {"31.0.0", 31, 68},
		"33.0.0.0rc1 70":     {"33.0.0.0rc1", 33, 70},
		"32.1.0.dev12 69":    {"32.1.0.dev12", 32, 69},
		"":                   {},
		"31.0.0":             {},
		"31 68":              {},
		"0.0.0 68":           {},
		"31.0.0 0":           {},
		"31.0.0 68\nmore 69": {},
		"31.0.0; rm 68":      {},
	} {
		if got, ok := ParseRelease(result); got != want || ok != (want.Major > 0) {
			t.Errorf("%q: got %+v, %t", result, got, ok)
		}
	}
}

func TestLatestFrom(t *testing.T) {
	for from, want := range map[int]int{25: 26, 26: 27, 27: 29, 28: 29, 31: 33, 33: 35, 34: 35} {
		if got := LatestFrom(from); got != want {
			t.Errorf("%d: got %d, want %d", from, got, want)
		}
	}
}

// run runs the script of a task with a program of Nova, and returns its exit code and the result.
func run(t *testing.T, task workload.Task, program, text string) (code int, result string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+text), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	script := strings.NewReplacer("/dev/termination-log", dir+"/log", "/tmp/", dir+"/").Replace(task.Script)
	command := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", script, "sh"}, task.Arguments...)...)
	command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	output, _ := command.CombinedOutput()
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		log = output // as the kubelet does
	}
	return command.ProcessState.ExitCode(), string(log)
}

// table is the output of nova-status.
const table = `cat <<'END'
+------------------------------------------------------------------+
| Upgrade Check Results                                            |
+------------------------------------------------------------------+
| Check: Cells v2                                                  |
| Result: Success                                                  |
| Details: None                                                    |
+------------------------------------------------------------------+
| Check: Older than N-1 computes                                   |
| Result: OLDER                                                    |
| Details: Current Nova version does not support computes older    |
|   than Antelope but the minimum compute service level in your    |
|   cell is 61.                                                    |
+------------------------------------------------------------------+
| Check: hw_machine_type unset                                     |
| Result: Warning                                                  |
| Details: Instances found without hw_machine_type set.            |
+------------------------------------------------------------------+
END
exit CODE`

func TestCheckUpgrade(t *testing.T) {
	status := func(older, code string) string {
		return strings.NewReplacer("OLDER", older, "CODE", code).Replace(table)
	}
	const unset = "hw_machine_type unset (Warning): Instances found without hw_machine_type set."
	for name, c := range map[string]struct {
		status string
		skip   []string
		code   int
		result string
	}{
		"no finding":                         {"exit 0", nil, 0, "passed"},
		"a warning":                          {status("Success", "1"), nil, 1, unset},
		"a warning that is skipped":          {status("Success", "1"), []string{"other", "hw_machine_type unset"}, 0, "passed"},
		"a failure":                          {status("Failure", "2"), []string{"hw_machine_type unset"}, 2, "Older than N-1 computes (Failure): Current Nova version does not support computes older than Antelope but the minimum compute service level in your cell is 61."},
		"a failure that cannot be skipped":   {status("Failure", "2"), []string{"Older than N-1 computes"}, 2, "Older than N-1 computes (Failure): Current Nova version does not support computes older than Antelope but the minimum compute service level in your cell is 61.; " + unset},
		"a crash":                            {"echo 'DBError: no such column' >&2; exit 255", nil, 255, "\nDBError: no such column\n"},
		"a warning in an unknown form":       {"echo '{}'; exit 1", nil, 1, "{}\n"},
		"a failure that the table has not":   {status("Success", "2"), []string{"hw_machine_type unset"}, 2, strings.TrimSuffix(strings.TrimPrefix(status("Success", "2"), "cat <<'END'\n"), "END\nexit 2")},
		"a skipped name that is an argument": {status("Success", "1"), []string{"'; exit 0; '"}, 1, unset},
	} {
		if code, result := run(t, CheckUpgrade("27.0.0", c.skip), "nova-status", c.status); code != c.code || result != c.result {
			t.Errorf("%s: got %d %q, want %d %q", name, code, result, c.code, c.result)
		}
	}
}

func TestMigrateData(t *testing.T) {
	const count = `n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n + 1)) > "$0.n"; [ "$n" -lt 3 ] && exit 1; `
	for name, c := range map[string]struct {
		manage string
		code   int
		result string
	}{
		"three batches": {count + "exit 0", 0, "done"},
		"a failure":     {count + "echo table; echo 'DBError: locked' >&2; exit 2", 2, "table\nDBError: locked\n"},
	} {
		if code, result := run(t, MigrateData("27.0.0"), "nova-manage", c.manage); code != c.code || result != c.result {
			t.Errorf("%s: got %d %q, want %d %q", name, code, result, c.code, c.result)
		}
	}
}
