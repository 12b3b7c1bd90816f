// Package manifest finds fields in manifests that have other names by now.
package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"asterism.dev/cli/internal/apigroup"
)

// OldField is a field of an object that the API no longer has.
type OldField struct {
	Line   int    // in the file, from 1
	Object string // KIND/NAME
	Path   string
	Write  string // the lines to write instead
}

// rename is a field, the last one of a path, with its new name. [] follows a list.
type rename struct{ path, name string }

// renames are the renamed fields of each kind.
var renames = map[string][]rename{
	"ControlPlane":  append(shared(spec+".nova"), rename{"spec.nova.cells[].apiAccess", "apiDatabaseAccess"}),
	"Nova":          append(shared(spec), rename{"spec.cells[].apiAccess", "apiDatabaseAccess"}),
	"NovaCell":      append(shared(spec), rename{"spec.apiAccess", "apiDatabaseAccess"}, rename{cellSecret, "metadataSecretRef"}),
	"NovaAPI":       shared(spec),
	"NovaConductor": shared(spec),
	"NovaMetadata":  shared(spec),
	"NovaScheduler": shared(spec),
}

// cellSecret is now in spec.
const cellSecret = "spec.metadata.secretRef"

const (
	spec           = "spec"
	services       = "openStackServices"
	formerServices = "neighbours"
	limits         = "unifiedLimits"
	formerLimits   = "UnifiedLimits" // the name of an entry
)

// shared are the renamed fields that several kinds have. An entry may be in a list whose name
// is new already.
func shared(parent string) []rename {
	all := []rename{{parent + "." + formerServices, services}}
	for _, list := range []string{formerServices, services} {
		for _, r := range []rename{{"secretRef", "accountSecretRef"}, {"region", "regionName"}, {"endpoint", "endpointOverride"}} {
			all = append(all, rename{parent + "." + list + "[]." + r.path, r.name})
		}
	}
	return all
}

// OldFields returns the old fields of every object of Asterism in a file of YAML documents, in
// the order of the file, and the number of these objects.
func OldFields(content []byte) (found []OldField, objects int, err error) {
	lines := strings.Split(string(content), "\n")
	for documents := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return found, objects, nil
		} else if err != nil {
			return nil, 0, err
		}
		for _, object := range objectsOf(&document) {
			objects++
			found = append(found, oldFields(object, lines)...)
		}
	}
}

// objectsOf returns the objects of Asterism in a document, which may be a list.
func objectsOf(document *yaml.Node) []*yaml.Node {
	if len(document.Content) == 0 {
		return nil
	}
	object := resolved(document.Content[0])
	if items := value(object, "items"); items != nil && strings.HasSuffix(text(object, "kind"), "List") {
		var all []*yaml.Node
		for _, item := range items.Content {
			all = append(all, objectsOf(&yaml.Node{Content: []*yaml.Node{item}})...)
		}
		return all
	}
	if group, _, _ := strings.Cut(text(object, "apiVersion"), "/"); !apigroup.IsOwn(group) {
		return nil
	}
	return []*yaml.Node{object}
}

func oldFields(object *yaml.Node, lines []string) []OldField {
	var fields []match
	for _, r := range renames[text(object, "kind")] {
		fields = append(fields, matches(object, "", r.path, r.name)...)
	}
	var found []OldField
	name := text(object, "kind") + "/" + nameOf(value(object, "metadata"))
	for _, m := range withLimits(slices.Clone(fields), object) {
		write := cmp.Or(m.write, written(lines, fields, m))
		if m.path == cellSecret {
			write += " # beside metadata"
		}
		found = append(found, OldField{Line: m.key.Line, Object: name, Path: m.path, Write: write})
	}
	slices.SortStableFunc(found, func(a, b OldField) int { return a.Line - b.Line })
	return found
}

// match is an old field of an object.
type match struct {
	path, name string
	key        *yaml.Node
	write      string // "": the line with the new names
}

// matches returns the fields of a path below a node.
func matches(node *yaml.Node, parent, path, name string) []match {
	first, rest, isParent := strings.Cut(path, ".")
	field, isList := strings.CutSuffix(first, "[]")
	key, child := find(node, field)
	if key == nil {
		return nil
	}
	here := strings.TrimPrefix(parent+"."+field, ".")
	switch {
	case !isParent:
		return []match{{path: here, name: name, key: key}}
	case !isList:
		return matches(child, here, rest, name)
	}
	var all []match
	for i, item := range child.Content {
		item = resolved(item)
		if nameOf(item) != formerLimits {
			all = append(all, matches(item, fmt.Sprintf("%s[%d]", here, i), rest, name)...)
		}
	}
	return all
}

// withLimits adds the entries of limits, which are not in the list any more, and removes a list
// that has nothing else.
func withLimits(fields []match, object *yaml.Node) []match {
	holder, parent := value(object, spec), spec
	if nova := value(holder, "nova"); nova != nil {
		holder, parent = nova, spec+".nova"
	}
	for _, name := range []string{formerServices, services} {
		key, list := find(holder, name)
		if key == nil {
			continue
		}
		for i, entry := range list.Content {
			if entry = resolved(entry); nameOf(entry) != formerLimits {
				continue
			}
			if len(list.Content) == 1 { // the limits replace the list
				fields = slices.DeleteFunc(fields, func(m match) bool { return m.key == key })
				fields = append(fields, match{path: parent + "." + name, key: key, write: limitsOf(entry)})
				continue
			}
			fields = append(fields, match{path: fmt.Sprintf("%s.%s[%d]", parent, name, i), key: entry, write: limitsOf(entry) + " # beside " + services})
		}
	}
	return fields
}

// limitsOf returns the field for an entry of limits.
func limitsOf(entry *yaml.Node) string {
	field := limits + ": {"
	if ref := cmp.Or(value(entry, "secretRef"), value(entry, "accountSecretRef")); ref != nil {
		field += "accountSecretRef: {name: " + nameOf(ref) + "}, "
	}
	return field + "endpointID: " + text(entry, "endpointID") + "}"
}

// maxLine bounds the lines of an output: JSON may have one line.
const maxLine = 160

// written returns the line of a field with all its new names.
func written(lines []string, fields []match, m match) string {
	if m.key.Line > len(lines) { // YAML knows more line breaks than \n
		return m.name + ":"
	}
	line := strings.TrimSuffix(lines[m.key.Line-1], "\r")
	if len(line) > maxLine || !strings.Contains(line, m.key.Value) {
		return m.name + ":"
	}
	var here []match
	for _, other := range fields {
		if other.key.Line == m.key.Line {
			here = append(here, other)
		}
	}
	slices.SortFunc(here, func(a, b match) int { return b.key.Column - a.key.Column })
	for _, other := range here { // from the right, which keeps the columns
		runes := []rune(line)
		if other.key.Column > len(runes) {
			continue
		}
		before, after := string(runes[:other.key.Column-1]), string(runes[other.key.Column-1:])
		line = before + strings.Replace(after, other.key.Value, other.name, 1)
	}
	return strings.TrimSpace(line)
}

func find(node *yaml.Node, field string) (key, value *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == field {
			return node.Content[i], resolved(node.Content[i+1])
		}
	}
	return nil, nil
}

func value(node *yaml.Node, field string) *yaml.Node {
	_, value := find(node, field)
	return value
}

func text(node *yaml.Node, field string) string {
	if found := value(node, field); found != nil {
		return found.Value
	}
	return ""
}

func nameOf(node *yaml.Node) string { return text(node, "name") }

// resolved returns the node that an alias stands for.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
