// Package command has the commands of kubectl asterism, one file for each.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/install"
	"asterism.dev/cli/internal/mask"
	"asterism.dev/cli/tree"
)

// Codes with which the program ends.
const (
	codeNotReady = 1 // something is not ready or missing, or a manifest has old fields
	codeError    = 2
)

// errNotReady ends the program with codeNotReady. The output has said what is not ready.
var errNotReady = errors.New("something is not ready")

// environment is what the commands use besides their arguments.
type environment struct {
	genericiooptions.IOStreams
	flags   *genericclioptions.ConfigFlags
	connect func() (*cluster.Cluster, error)
	// run runs another program, and find returns an error if the program is not on PATH.
	run     func(context.Context, install.Command) error
	find    func(program string) error
	now     func() time.Time
	version string
	// style is the form of a table in the standard output.
	style func() tree.Style
}

// Main runs the program and returns the code with which it ends.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The libraries log faults that the commands report as well.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	flags := genericclioptions.NewConfigFlags(true)
	return run(ctx, os.Args[1:], &environment{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		flags:     flags,
		connect:   func() (*cluster.Cluster, error) { return cluster.Connect(flags) },
		run:       install.Program(os.Stderr),
		find:      install.Find,
		now:       time.Now,
		version:   version(),
		style:     func() tree.Style { return tree.StyleOf(os.Stdout) }, // asked again, because a window changes
	})
}

func run(ctx context.Context, arguments []string, env *environment) int {
	root := newRoot(env)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNotReady), errors.Is(err, errOldFields), errors.Is(err, errMissing):
		return codeNotReady
	}
	_, _ = fmt.Fprintln(env.ErrOut, "error:", err)
	return codeError
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-asterism",
		Short: "Show the state of Nova control planes, and install their operators.",
		Long: `Show the state of Nova control planes, restart their services, and install, upgrade and
remove Asterism's operators. Only restart, install, upgrade and uninstall change anything
in the cluster.

The exit code is 0 on success, 1 if something is not ready or missing or if a manifest
contains old fields, and 2 after an error.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl asterism"},
		SilenceUsage:  true,
		SilenceErrors: true, // run prints the error
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	env.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newStatus(env),
		newCells(env),
		newConfig(env),
		newExplain(env),
		newEvents(env),
		newLogs(env),
		newReport(env),
		newCheck(env),
		newRestart(env),
		newInstall(env),
		newUpgrade(env),
		newUninstall(env),
		newVersion(env),
	)
	return root
}

// hint writes a line for a person, apart from the data.
func (env *environment) hint(format string, arguments ...any) {
	_, _ = fmt.Fprintf(env.ErrOut, format+"\n", arguments...)
}

// hintUnread names what the output lacks.
func (env *environment) hintUnread(unread []cluster.UnreadError) {
	for _, u := range unread {
		env.hint("warning: %s. The output lacks them: ask for the role view in the namespace", u)
	}
}

// learnSecrets lets a masker know the values of a namespace's Secrets. An error says that it knows
// only what looks like a secret.
func learnSecrets(ctx context.Context, access *cluster.Cluster, masker *mask.Masker, namespace string) error {
	var list corev1.SecretList
	if err := access.WithWatch.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("the Secrets of namespace %s cannot be read, so the log is masked only where it looks like a secret: %w", namespace, err)
	}
	for _, secret := range list.Items {
		masker.Learn(secret.Namespace+"/"+secret.Name, secret.Data)
	}
	return nil
}

// release is the version that the linker sets; see target cli of the Makefile.
var release string

// version returns the release, or else the version that Go has recorded.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
