package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mode is the set of components that a cluster runs.
type mode string

const (
	controlPlane mode = "control-plane"
	full         mode = "full"
)

// state is stored between two commands. It does not contain the running processes, which
// are read from the machine.
type state struct {
	Mode  mode           `json:"mode"`
	Ports map[string]int `json:"ports"`
}

const (
	stateFile = "state.json"
	lockFile  = "lock"
)

// readState returns fs.ErrNotExist if dir contains no cluster.
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

// protect creates the folder of a cluster, or closes an existing one to other users. Below it,
// every user may write to the volumes, because pods run as any user. Pods do not need to enter
// the folder itself: the kubelet and containerd, which run as root, mount what is in it.
func protect(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// writeFile replaces a file atomically, so that a killed run leaves the old or the new
// file. An unchanged file keeps its modification time.
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

// checkContent refuses a folder with other files than a cluster's, since `down` removes it.
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
		return fmt.Errorf("%s contains %s and no cluster: choose another --dir, because down removes the folder", dir, foreign)
	}
	return nil
}
