// Package cache is the folder of what is built once for all checkouts.
package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir returns a folder of the cache, which is ASTERISM_CACHE, or asterism in the user's cache
// folder.
func Dir(name string) (string, error) {
	if root := os.Getenv("ASTERISM_CACHE"); root != "" {
		return filepath.Abs(filepath.Join(root, name))
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: set ASTERISM_CACHE: %w", err)
	}
	return filepath.Join(root, "asterism", name), nil
}

// Lock waits until no other process holds the lock. Its holder may remove the file, so a
// lock is valid only while the path still names the locked file.
func Lock(path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			waiting()
			if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
				return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
			}
		}
		held, heldErr := file.Stat()
		named, namedErr := os.Stat(path)
		if heldErr == nil && namedErr == nil && os.SameFile(held, named) {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
	}
}
