// Package mounts lists mount points.
package mounts

import (
	"bufio"
	"os"
	"strings"
)

// Below lists the mount points at or below the folders, in the order of mounting.
func Below(folders ...string) ([]string, error) { return below("/proc/self/mountinfo", folders) }

func below(path string, folders []string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	// proc(5): the mount point is the fifth field, with blanks escaped as \ooo.
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		point := unescape.Replace(strings.Fields(lines.Text())[4])
		for _, folder := range folders {
			if point == folder || strings.HasPrefix(point, folder+"/") {
				found = append(found, point)
				break
			}
		}
	}
	return found, lines.Err()
}
