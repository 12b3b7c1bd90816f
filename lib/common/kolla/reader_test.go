package kolla_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"asterism.dev/lib/common/kolla"
)

// reader reads config.json by the rules of kolla_set_configs (kolla:
// docker/base/set_configs.py), which exists in images of kolla alone. The reader works on a folder in place of the root file system, and notes owners and modes instead
// of setting them.
type reader struct {
	root  string
	users []string
	set   map[string]string // path: "user group mode", "-" for the mode of the source
}

// keys are the arguments of kolla's ConfigFile: it fails with any other key.
var keys = []string{"source", "dest", "owner", "perm", "optional", "preserve_properties", "merge"}

// read returns the words of the command, after all copies.
func (r *reader) read(content string) ([]string, error) {
	var config struct {
		Command     *string          `json:"command"`
		Files       []map[string]any `json:"config_files"`
		Permissions []map[string]any `json:"permissions"`
	}
	if err := json.Unmarshal([]byte(content), &config); err != nil {
		return nil, err // also a command that is no string, which cannot be written to /run_command
	}
	if config.Command == nil {
		return nil, errors.New("the key command is required")
	}
	for _, file := range config.Files {
		if err := checkKeys(file); err != nil {
			return nil, err
		}
	}
	for _, file := range config.Files {
		if err := r.copyFile(file); err != nil {
			return nil, err
		}
	}
	for _, permission := range config.Permissions {
		at := r.root + text(permission["path"])
		if err := r.permit(at, text(permission["owner"]), text(permission["perm"])); err != nil {
			return nil, err
		}
	}
	return r.words(*config.Command)
}

// words splits the command as kolla_start does, by: exec ${CMD}
func (r *reader) words(command string) ([]string, error) {
	split := exec.CommandContext(context.Background(), "bash", "-c", `CMD=$(cat); exec printf '%s\0' ${CMD}`)
	split.Dir, split.Stdin = r.root, strings.NewReader(command)
	out, err := split.Output()
	if strings.HasPrefix(command, "-") {
		return nil, errors.Join(err, fmt.Errorf("exec has an option %s", command))
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), err
}

func checkKeys(file map[string]any) error {
	for key := range file {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("unexpected key %s", key)
		}
	}
	if file["source"] == nil || file["dest"] == nil {
		return errors.New("source and dest are required")
	}
	if (file["owner"] == nil || file["perm"] == nil) && file["preserve_properties"] != true {
		return errors.New("owner and perm, or preserve_properties, are required")
	}
	return nil
}

func (r *reader) copyFile(file map[string]any) error {
	sources, err := filepath.Glob(r.root + text(file["source"]))
	if err != nil || len(sources) == 0 && file["optional"] != true {
		return fmt.Errorf("%v is not found: %w", file["source"], errors.Join(err, fs.ErrNotExist))
	}
	for _, source := range sources {
		dest := r.root + text(file["dest"])
		if strings.HasSuffix(dest, "/") {
			dest = filepath.Join(dest, filepath.Base(source))
		}
		if file["merge"] != true {
			if err := os.RemoveAll(dest); err != nil {
				return err
			}
		}
		if err := r.merge(source, dest, file); err != nil {
			return err
		}
	}
	return nil
}

// merge copies a file, or a directory into a directory.
func (r *reader) merge(source, dest string, file map[string]any) error {
	return filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := dest + strings.TrimPrefix(at, source)
		if entry.IsDir() {
			err = os.MkdirAll(to, 0o700)
		} else {
			var content []byte
			if content, err = os.ReadFile(at); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600))
			}
		}
		if err != nil || file["preserve_properties"] == true {
			return err
		}
		return r.permit(to, text(file["owner"]), text(file["perm"]))
	})
}

// permit looks the owner up, and reads the mode as Python's int(mode, base=0), after an "o"
// is inserted into a mode of four digits.
func (r *reader) permit(pattern, owner, mode string) error {
	user, group, stated := strings.Cut(owner, ":")
	if !stated || group == "" {
		group = user
	}
	if !slices.Contains(r.users, user) || !slices.Contains(r.users, group) {
		return fmt.Errorf("the image has no user %s or no group %s", user, group)
	}
	as := "-"
	if mode != "" {
		if len(mode) == 4 && mode[1] != 'o' {
			mode = mode[:1] + "o" + mode[1:]
		}
		if len(mode) > 1 && mode[0] == '0' && mode[1] >= '0' && mode[1] <= '9' {
			return fmt.Errorf("%s is no number of Python", mode)
		}
		number, err := strconv.ParseInt(mode, 0, 32)
		if err != nil {
			return err
		}
		as = fmt.Sprintf("%o", number)
	}
	found, err := filepath.Glob(pattern)
	for _, at := range found {
		r.set[strings.TrimPrefix(at, r.root)] = user + " " + group + " " + as
	}
	return err
}

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// difference returns the first file that does not have the content, the owner or the mode
// that a Config states, "" for none.
func (r *reader) difference(config kolla.Config) string {
	meant := func(at, owner, mode string) string {
		user, group, _ := strings.Cut(owner, ":")
		if group == "" {
			group = user
		}
		as := user + " " + group + " -"
		if octal, err := strconv.ParseInt(strings.TrimPrefix(mode, "0o"), 8, 32); err == nil {
			as = fmt.Sprintf("%s %s %o", user, group, octal)
		}
		if set := r.set[at]; set != as {
			return fmt.Sprintf("%s is %q instead of %q", at, set, as)
		}
		return ""
	}
	for _, file := range config.Files {
		if _, err := os.Stat(r.root + file.Dest); err != nil && !file.Optional {
			return err.Error()
		}
		if !strings.HasSuffix(file.Dest, "/") && !file.PreserveProperties {
			if problem := meant(file.Dest, file.Owner, file.Perm); problem != "" {
				return problem
			}
		}
	}
	if _, err := os.Stat(r.root + "/var/lib/kolla/config_files"); err != nil {
		return err.Error()
	}
	if len(config.Permissions) > 1 {
		return meant("/var/log/thing/a.log", config.Permissions[1].Owner, config.Permissions[1].Perm)
	}
	return ""
}
