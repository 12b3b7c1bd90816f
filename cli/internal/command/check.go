package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"asterism.dev/cli/internal/manifest"
)

// errOldFields ends the program with codeNotReady. The output has the fields.
var errOldFields = errors.New("a manifest has old fields")

func newCheck(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Find fields in manifests that have other names by now.",
		Long: `Read manifests, and show each field of an object of Asterism that the API no longer has:
its file and line, its path, and what to write instead. Other kinds of objects are
ignored, and nothing else is checked. - reads the standard input. The program ends
with 1 if it finds such a field.`,
		Example: `  kubectl asterism check controlplane.yaml
  kustomize build . | kubectl asterism check -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error { return env.check(files) },
	}
}

func (env *environment) check(files []string) error {
	found, objects := 0, 0
	for _, file := range files {
		content, err := env.read(file)
		if err != nil {
			return err
		}
		old, ofAsterism, err := manifest.OldFields(content)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, field := range old {
			_, _ = fmt.Fprintf(env.Out, "%s:%d: %s: %s is now:\n  %s\n", file, field.Line, field.Object, field.Path, field.Write)
		}
		found += len(old)
		objects += ofAsterism
	}
	if found > 0 {
		return errOldFields
	}
	_, err := fmt.Fprintf(env.Out, "No old fields. Objects of Asterism: %d\n", objects)
	return err
}

func (env *environment) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(env.In)
	}
	return os.ReadFile(file)
}
