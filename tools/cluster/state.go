package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode says how much of a cluster runs.
type mode string

const (
	controlPlane mode = "control-plane"
	full         mode = "full"
)

// state is what a cluster must remember between two commands. Which processes
// run is not part of it: that is read from the machine.
type state struct {
	Mode  mode           `json:"mode"`
	Ports map[string]int `json:"ports"`
}

const (
	stateFile = "state.json"
	lockFile  = "lock"
)

// readState gives fs.ErrNotExist when there is no cluster in dir.
func readState(dir string) (*state, error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	s := &state{}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	return s, nil
}

func (s *state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, stateFile), append(content, '\n'), 0o600)
}

// writeFile replaces a file whole, so that a killed run leaves the old or the
// new one. A file that has the content already keeps its time of change.
func writeFile(path string, content []byte, perm fs.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, perm); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// checkContent refuses a folder that holds anything but a cluster, since `down` removes it.
func checkContent(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	foreign := ""
	for _, entry := range entries {
		switch entry.Name() {
		case stateFile:
			return nil
		case lockFile, stateFile + ".new":
		default:
			foreign = entry.Name()
		}
	}
	if foreign != "" {
		return fmt.Errorf("%s is not empty and not a cluster's (it has %s): choose another --dir, as down removes it", dir, foreign)
	}
	return nil
}

// lock waits until no other command works on the path's owner. The file may be
// removed by its holder, so the lock counts only while the path still names it.
func lock(path string, waiting func()) (unlock func(), err error) {
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
