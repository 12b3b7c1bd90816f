package kolla

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Names of kolla's public format.
const (
	// EntryPoint is the program with which an image of kolla's layout starts.
	EntryPoint = "kolla_start"
	// ConfigPath is the file that EntryPoint reads. A config.yaml beside it would be read
	// instead.
	ConfigPath = configDir + "/config.json"
	configDir  = "/var/lib/kolla/config_files"
	// StrategyVariable is an environment variable that EntryPoint requires. With
	// CopyAlways, every start of the container copies the files.
	StrategyVariable = "KOLLA_CONFIG_STRATEGY"
	CopyAlways       = "COPY_ALWAYS"
)

// Config is the content of config.json. EntryPoint copies Files in their order, then sets
// Permissions, both as root, and then runs Command as the user of the image.
//
// EntryPoint writes Command and every path to the log: none may contain a secret.
type Config struct {
	// Command is the program of the container, and its arguments. EntryPoint splits the
	// command at white space and expands patterns of file names, without quotes.
	Command []string
	// Files are copied into the container.
	Files []File
	// Permissions are set on files and directories of the container.
	Permissions []Permission
}

// File is a file or a directory that is copied: an entry of config_files.
type File struct {
	// Source is an absolute path, or a pattern of shell for several.
	Source string `json:"source"`
	// Dest is an absolute path; a path that ends in / is a directory that contains the
	// copy. Dest is deleted before the copy, unless Merge is set. Dest must not be a mount,
	// because a mount cannot be deleted.
	Dest string `json:"dest"`
	// Owner is "user:group", or "user" for a user and the group of the same name. The
	// names, no numbers, must exist in the image. Required unless PreserveProperties is
	// set.
	Owner string `json:"owner,omitempty"`
	// Perm is the mode in four octal digits that begin with 0, such as 0640. A directory
	// that is readable is also searchable. Required unless PreserveProperties is set.
	Perm string `json:"perm,omitempty"`
	// Optional lets the container start without the source.
	Optional bool `json:"optional,omitempty"`
	// Merge keeps the files of a directory Dest that Source does not have.
	Merge bool `json:"merge,omitempty"`
	// PreserveProperties copies owner and mode from the source.
	PreserveProperties bool `json:"preserve_properties,omitempty"`
}

// Permission is an owner and a mode for existing files: an entry of permissions. A path
// that does not exist is no error.
type Permission struct {
	// Path is an absolute path, or a pattern of shell for several.
	Path string `json:"path"`
	// Owner is as in File, and required.
	Owner string `json:"owner"`
	// Perm is as in File; "" keeps the mode.
	Perm string `json:"perm,omitempty"`
	// Recurse includes all files below a directory.
	Recurse bool `json:"recurse,omitempty"`
}

// JSON returns the content of config.json, or an error that names the first entry that
// kolla_set_configs refuses or reads differently.
func (c Config) JSON() (string, error) {
	if err := c.validate(); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Command     string       `json:"command"`
		Files       []File       `json:"config_files,omitempty"`
		Permissions []Permission `json:"permissions,omitempty"`
	}{strings.Join(c.Command, " "), c.Files, c.Permissions})
	if err != nil {
		return "", fmt.Errorf("writing config.json: %w", err)
	}
	return out.String(), nil
}
