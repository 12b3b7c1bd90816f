package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// outputVersion is the API version of the documents that commands print.
const outputVersion = "cli.asterism.dev/v1alpha1"

// output is the flag -o of a command: text, or a document.
type output struct {
	*genericclioptions.PrintFlags
	text []string // formats that the command prints itself
}

// addOutput adds the flags of a command's output.
func addOutput(cmd *cobra.Command, text ...string) *output {
	flags := genericclioptions.NewPrintFlags("")
	flags.NamePrintFlags = nil // the documents are no objects of the cluster
	flags.JSONYamlPrintFlags.AddFlags(cmd)
	flags.TemplatePrinterFlags.AddFlags(cmd)
	allowed := append(slices.Clone(text), "json", "yaml", "jsonpath=…", "go-template=…")
	cmd.Flags().StringVarP(flags.OutputFormat, "output", "o", "", "Output format: "+strings.Join(allowed, ", "))
	if unused := cmd.Flags().Lookup("show-managed-fields"); unused != nil {
		unused.Hidden = true
	}
	return &output{PrintFlags: flags, text: text}
}

// isText returns true if the command prints its own text.
func (o *output) isText() bool {
	return *o.OutputFormat == "" && *o.TemplatePrinterFlags.TemplateArgument == "" || slices.Contains(o.text, *o.OutputFormat)
}

// printer returns the printer of documents; nil for text.
func (o *output) printer() (printers.ResourcePrinter, error) {
	if o.isText() {
		return nil, nil
	}
	printer, err := o.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		allowed := append(slices.Clone(o.text), "json", "yaml", "jsonpath=…", "go-template=…")
		return nil, fmt.Errorf("output format %q is not known: use one of %s", *o.OutputFormat, strings.Join(allowed, ", "))
	}
	return printer, err
}

// printDocument prints a list of items as one document.
func printDocument[T any](out io.Writer, printer printers.ResourcePrinter, kind string, items []T) error {
	text, err := json.Marshal(map[string]any{"apiVersion": outputVersion, "kind": kind, "items": append([]T{}, items...)})
	if err != nil {
		return err
	}
	document := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(text, &document.Object); err != nil {
		return err
	}
	return printer.PrintObj(document, out)
}

// table prints rows in columns; the first row is the header.
func (env *environment) table(rows [][]string) error {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(env.Out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
