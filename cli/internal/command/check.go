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
	operators := operatorNamespaces
	cmd := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check the cluster and the namespace, or find old fields in manifests.",
		Long: `Without files: check whether the cluster and the namespace are ready for a ControlPlane,
before and after the installation of the operators: the version of Kubernetes, the kinds,
the operators, their rights in the namespace, its pod security, and the Secrets and
Services that each ControlPlane of the namespace names. Nothing is changed, no server is
called, and no value of a Secret is printed. What you may not read is not checked.

With files: read manifests, and show each field of an object of Asterism that the API no
longer has: its file and line, its path, and what to write instead. Other kinds of
objects are ignored, and nothing else is checked. - reads the standard input.

The program ends with 1 if something is missing, or if it finds such a field.`,
		Example: `  kubectl asterism check -n openstack
  kubectl asterism check controlplane.yaml
  kustomize build . | kubectl asterism check -`,
	}
	cmd.Flags().StringSliceVar(&operators, "operator-namespaces", operators, "Namespaces of the operators")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if len(files) == 0 {
			return env.checkCluster(cmd.Context(), operators)
		}
		return env.checkFiles(files)
	}
	return cmd
}

func (env *environment) checkFiles(files []string) error {
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
