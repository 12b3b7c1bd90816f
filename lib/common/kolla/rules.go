package kolla

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	// modes are read alike by every release of kolla_set_configs. It takes 644 for a
	// decimal number, and 1777 and 00644 for no number; --check compares four digits.
	modes = regexp.MustCompile(`^0[0-7]{3}$`)
	// owners are looked up by name: a number is no user of the image.
	owners = regexp.MustCompile(`^[a-z_][a-z0-9_-]*\$?(:[a-z_][a-z0-9_-]*\$?)?$`)
)

// patterns are the characters that shell and kolla_set_configs expand in a path.
const patterns = "*?["

func (c Config) validate() error {
	if err := checkCommand(c.Command); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	for i, file := range c.Files {
		if err := file.check(); err != nil {
			return fmt.Errorf("config_files[%d]: %w", i, err)
		}
	}
	for i, permission := range c.Permissions {
		if err := permission.check(); err != nil {
			return fmt.Errorf("permissions[%d]: %w", i, err)
		}
	}
	return nil
}

// checkCommand refuses words that do not reach the program as they are.
func checkCommand(words []string) error {
	if len(words) == 0 {
		return errors.New("the command is required")
	}
	for _, word := range words {
		switch {
		case word == "":
			return errors.New("a word is empty: the entry point would drop the word")
		case strings.ContainsFunc(word, isSeparator):
			return fmt.Errorf("the word %q has white space: the entry point would split the word", word)
		case strings.ContainsAny(word, patterns):
			return fmt.Errorf("the word %q has one of %s: the entry point would expand the word", word, patterns)
		}
	}
	if strings.HasPrefix(words[0], "-") {
		return fmt.Errorf("the program %q begins with -: the entry point would take the word for an option", words[0])
	}
	return nil
}

func isSeparator(r rune) bool { return r <= ' ' || r == 0x7f }

func (f File) check() error {
	if err := absolute("source", f.Source); err != nil {
		return err
	}
	if err := absolute("dest", f.Dest); err != nil {
		return err
	}
	several := strings.ContainsAny(f.Source, patterns)
	if several && !strings.HasSuffix(f.Dest, "/") {
		return fmt.Errorf("source %s is a pattern, and dest %s is one file: end dest in /", f.Source, f.Dest)
	}
	if !f.Merge && contains(f.target(), f.Source) {
		return fmt.Errorf("dest %s contains source %s: dest is deleted before the copy", f.Dest, f.Source)
	}
	if !f.Merge && contains(f.target(), configDir) {
		return fmt.Errorf("dest %s contains %s, which the entry point needs: dest is deleted before the copy", f.Dest, configDir)
	}
	if f.PreserveProperties {
		if f.Owner != "" || f.Perm != "" {
			return errors.New("owner and perm have no effect with preserve_properties: leave them out")
		}
		return nil
	}
	if f.Owner == "" || f.Perm == "" {
		return errors.New("owner and perm are required, or preserve_properties")
	}
	return errors.Join(checkOwner(f.Owner), checkMode(f.Perm))
}

// target returns the path that the copy has.
func (f File) target() string {
	if strings.HasSuffix(f.Dest, "/") {
		return path.Join(f.Dest, path.Base(f.Source))
	}
	return path.Clean(f.Dest)
}

func (p Permission) check() error {
	if err := absolute("path", p.Path); err != nil {
		return err
	}
	if p.Owner == "" {
		return errors.New("owner is required")
	}
	if p.Perm == "" {
		return checkOwner(p.Owner)
	}
	return errors.Join(checkOwner(p.Owner), checkMode(p.Perm))
}

func absolute(field, value string) error {
	if !path.IsAbs(value) {
		return fmt.Errorf("%s %q is no absolute path", field, value)
	}
	return nil
}

// contains tells whether a path is the directory, or is below it.
func contains(directory, at string) bool {
	return at == directory || strings.HasPrefix(at, strings.TrimSuffix(directory, "/")+"/")
}

func checkOwner(owner string) error {
	if !owners.MatchString(owner) {
		return fmt.Errorf("owner %q is neither user:group nor user, by name", owner)
	}
	return nil
}

func checkMode(mode string) error {
	if !modes.MatchString(mode) {
		return fmt.Errorf("perm %q is not of four octal digits that begin with 0, such as 0644", mode)
	}
	return nil
}
