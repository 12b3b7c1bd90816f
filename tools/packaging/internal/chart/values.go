package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/packaging/internal/reference"
)

// value is a key of values.yaml. values.yaml, values.schema.json and the table of the README
// are made from the same list.
type value struct {
	key     string
	comment string
	// defaultValue is the value in values.yaml and in the table.
	defaultValue any
	// schema of the value. A value with a group needs none.
	schema schema
	group  []value
	// listing is text that values.yaml has as a comment below the value's comment.
	listing string
}

// encodeValues returns values.yaml.
func encodeValues(values []value) ([]byte, error) {
	content := bytes.NewBufferString(output.Header)
	err := writeValues(content, values, "")
	return content.Bytes(), err
}

func writeValues(to *bytes.Buffer, values []value, indent string) error {
	for _, v := range values {
		if indent == "" {
			to.WriteString("\n")
		}
		for _, line := range wrap(v.comment, 92-len(indent)) {
			fmt.Fprintf(to, "%s# %s\n", indent, line)
		}
		for line := range strings.Lines(v.listing) {
			to.WriteString(strings.TrimRight(indent+"# "+line, " \n") + "\n")
		}
		if v.group != nil {
			fmt.Fprintf(to, "%s%s:\n", indent, v.key)
			if err := writeValues(to, v.group, indent+"  "); err != nil {
				return err
			}
			continue
		}
		encoded, err := yaml.Marshal(map[string]any{v.key: v.defaultValue})
		if err != nil {
			return fmt.Errorf("value %s: %w", v.key, err)
		}
		for line := range strings.Lines(string(encoded)) {
			to.WriteString(indent + line)
		}
	}
	return nil
}

// encodeSchema returns values.schema.json, which refuses keys that values does not have.
func encodeSchema(title string, values []value, definitions schema) ([]byte, error) {
	root := groupSchema(values)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	if len(definitions) > 0 {
		root["$defs"] = definitions
	}
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(root)
	return content.Bytes(), err
}

func groupSchema(values []value) schema {
	fields := schema{}
	for _, v := range values {
		property := schema{"description": v.comment}
		if v.group != nil {
			maps.Copy(property, groupSchema(v.group))
		}
		maps.Copy(property, v.schema)
		fields[v.key] = property
	}
	return schema{typ: object, additional: false, properties: fields}
}

// table returns the rows of the README's table of values.
func table(values []value, prefix string) (rows string, err error) {
	for _, v := range values {
		if v.group != nil {
			below, err := table(v.group, prefix+v.key+".")
			if err != nil {
				return "", err
			}
			rows += below
			continue
		}
		defaultValue, err := json.Marshal(v.defaultValue)
		if err != nil {
			return "", err
		}
		rows += fmt.Sprintf("| `%s` | `%s` | %s |\n", prefix+v.key, defaultValue, reference.Cell(v.comment))
	}
	return rows, nil
}

// wrap breaks a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
