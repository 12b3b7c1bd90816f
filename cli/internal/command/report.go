package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/report"
)

// operatorNamespaces are the namespaces of the operators in the installation of this
// repository.
var operatorNamespaces = []string{"asterism-system", "asterism-storage"}

// reportFlags are the flags of the command report.
type reportFlags struct {
	file       string
	operators  []string
	since      time.Duration
	timeout    time.Duration
	maxSize    string
	maxLogSize string
}

func newReport(env *environment) *cobra.Command {
	flags := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Collect objects, events and logs in an archive without secrets.",
		Long: `Collect the objects of Asterism in the namespace, their pods, events and logs, and the
logs of the operators in one tar.gz file. Of a Secret, the archive contains only the
name and the keys. In every text, the values of the Secrets that you may read and texts
in the form of a secret are replaced by ***. Read the archive before you give it to
others: the program cannot recognize a secret that is in no Secret and has no known form.

The command needs no particular right: file unread.txt of the archive lists what could
not be read. The command prints the name of the file.`,
		Example: `  kubectl asterism report -n openstack
  kubectl asterism report -n openstack --since 2h --file report.tar.gz`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&flags.file, "file", "f", "", "File to write; - for the standard output. Default: asterism-report-NAMESPACE-TIME.tar.gz")
	cmd.Flags().StringSliceVar(&flags.operators, "operator-namespaces", operatorNamespaces, "Namespaces of the operators")
	cmd.Flags().DurationVar(&flags.since, "since", 24*time.Hour, "Age of the oldest lines of logs")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 5*time.Minute, "Time after which the rest is left out")
	cmd.Flags().StringVar(&flags.maxSize, "max-size", "200Mi", "Size of all logs before compression")
	cmd.Flags().StringVar(&flags.maxLogSize, "max-log-size", "10Mi", "Size of one log before compression")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return env.report(cmd.Context(), flags)
	}
	return cmd
}

func (env *environment) report(ctx context.Context, flags *reportFlags) error {
	maxSize, err := resource.ParseQuantity(flags.maxSize)
	if err != nil {
		return fmt.Errorf("--max-size %s: %w: write a size such as 200Mi", flags.maxSize, err)
	}
	maxLogSize, err := resource.ParseQuantity(flags.maxLogSize)
	if err != nil {
		return fmt.Errorf("--max-log-size %s: %w: write a size such as 10Mi", flags.maxLogSize, err)
	}
	access, err := env.connect()
	if err != nil {
		return err
	}
	options := report.Options{
		Namespace: access.Namespace, Operators: flags.operators, Version: env.version, Now: env.now(),
		Since: flags.since, MaxSize: maxSize.Value(), MaxLogSize: maxLogSize.Value(),
		Progress: func(step string) { env.hint("reading %s", step) },
	}
	ctx, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	if flags.file == "-" {
		unread, err := report.Write(ctx, access, env.Out, options)
		env.hintMissing(unread)
		return err
	}
	return env.reportFile(ctx, access, flags.file, options)
}

// reportFile writes the archive beside its final name, so that a file of this name is always
// complete.
func (env *environment) reportFile(ctx context.Context, access *cluster.Cluster, name string, options report.Options) (err error) {
	if name == "" {
		name = fmt.Sprintf("asterism-report-%s-%s.tar.gz", options.Namespace, options.Now.UTC().Format("20060102-150405"))
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".asterism-report-*") // mode 0600
	if err != nil {
		return fmt.Errorf("the archive cannot be written: %w: name another file with --file", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	unread, err := report.Write(ctx, access, file, options)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("the archive %s is not complete: %w", name, err)
	}
	if err = os.Rename(file.Name(), name); err != nil {
		return err
	}
	env.hintMissing(unread)
	_, err = fmt.Fprintln(env.Out, name)
	return err
}

func (env *environment) hintMissing(unread []cluster.UnreadError) {
	if len(unread) > 0 {
		env.hint("warning: %d things could not be read: file unread.txt of the archive lists them with the reasons", len(unread))
	}
}
