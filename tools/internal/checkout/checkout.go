// Package checkout finds the repository.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
)

// Root returns the repository's folder, which is at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools", "cluster", "binaries")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("tools/cluster/binaries not found above the working directory: run this inside the repository")
		}
	}
}
