package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/install"
)

// planning makes the plan of a command.
type planning func(context.Context, *cluster.Cluster, install.Options) (install.Plan, error)

// installFlags are the flags of the commands that change the cluster.
type installFlags struct {
	install.Options
	dryRun, yes bool
}

func newInstall(env *environment) *cobra.Command {
	flags := &installFlags{}
	cmd := newChange(env, flags, install.Install)
	cmd.Use, cmd.Short = "install --with olm|helm|kubectl", "Install the operators."
	cmd.Long = `Install the operators of a release. --with selects the way:

  olm      OLM v0 of OpenShift: docs/guides/openshift.md
  helm     the program helm, version 4: docs/helm.md
  kubectl  the program kubectl: docs/guides/kubernetes.md
` + changeText
	cmd.Example = `  kubectl asterism install --with olm --namespaces openstack --dry-run
  kubectl asterism install --with helm --namespaces openstack --shared-volume
  kubectl asterism install --with kubectl --from .demo/control-plane --namespaces openstack --yes`
	cmd.Flags().StringSliceVar(&flags.Namespaces, "namespaces", nil, "Namespaces in which ControlPlanes may be created. Default: the namespace of -n")
	cmd.Flags().BoolVar(&flags.SharedVolume, "shared-volume", false, "Also install the shared-volume operator")
	cmd.Flags().StringVar(&flags.Channel, "channel", "candidate-v0", "With olm: the channel of the Subscriptions")
	cmd.Flags().StringVar(&flags.Registry, "registry", "", "With helm: HOST/PATH of the images. Default: that of the charts")
	cmd.Flags().BoolVar(&flags.TakeOwnership, "take-ownership", false, "With helm: take over the objects of an installation by kubectl")
	addCatalog(cmd, flags)
	return cmd
}

func newUpgrade(env *environment) *cobra.Command {
	flags := &installFlags{}
	cmd := newChange(env, flags, install.Upgrade)
	cmd.Use, cmd.Short = "upgrade --with olm|helm|kubectl", "Upgrade the operators to a newer release."
	cmd.Long = `Upgrade the operators to the release in --from, in the way in which they were installed.
The shared-volume operator is upgraded as well if the cluster has it. The pods of
Nova restart only if the new version changes their template.
` + changeText
	cmd.Example = `  kubectl asterism upgrade --with helm --dry-run`
	addCatalog(cmd, flags)
	return cmd
}

func newUninstall(env *environment) *cobra.Command {
	flags := &installFlags{}
	cmd := newChange(env, flags, install.Uninstall)
	cmd.Use, cmd.Short = "uninstall --with olm|helm|kubectl", "Remove the operators."
	cmd.Long = `Remove the operators in the way in which they were installed, including the shared-volume
operator. While ControlPlanes, SharedVolumes or other objects of
Asterism exist, the command refuses and names the commands that delete the objects.
The kinds (CustomResourceDefinitions) are kept unless --delete-crds is given.
` + changeText
	cmd.Example = `  kubectl asterism uninstall --with olm --dry-run`
	cmd.Flags().StringVar(&flags.CatalogNamespace, "catalog-namespace", catalogNamespace, "With olm: the namespace of the CatalogSource")
	cmd.Flags().BoolVar(&flags.DeleteCRDs, "delete-crds", false, "Also delete the kinds, and every object of these kinds")
	return cmd
}

// changeText is the end of each help text.
const changeText = `
The command prints its plan, asks, and runs the steps. A step that takes longer reports
the object that is not ready and the time. Commands of helm and kubectl are printed as
they are run.`

// catalogNamespace is the namespace of catalogs on OpenShift.
const catalogNamespace = "openshift-marketplace"

func addCatalog(cmd *cobra.Command, flags *installFlags) {
	cmd.Flags().StringVar(&flags.CatalogNamespace, "catalog-namespace", catalogNamespace, "With olm: the namespace of the CatalogSource")
	cmd.Flags().StringVar(&flags.Catalog, "catalog", "", "With olm: the image of the catalog, for example in a mirror. Default: that of the release")
}

func newChange(env *environment, flags *installFlags, plans planning) *cobra.Command {
	cmd := &cobra.Command{Args: cobra.NoArgs}
	cmd.Flags().StringVar(&flags.With, "with", "", "Way of the installation: "+strings.Join(install.Ways, ", "))
	cmd.Flags().StringVar(&flags.From, "from", ".release", "Folder of a release; for helm also a checkout, for kubectl also a folder of \"make push\"")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "Only print the plan")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "Do not ask before the first step")
	cmd.Flags().DurationVar(&flags.Timeout, "timeout", 10*time.Minute, "Time limit of each wait")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return env.change(cmd, flags, plans) }
	return cmd
}

func (env *environment) change(cmd *cobra.Command, flags *installFlags, plans planning) error {
	if !slices.Contains(install.Ways, flags.With) {
		return fmt.Errorf("--with %q is not known: use one of %s", flags.With, strings.Join(install.Ways, ", "))
	}
	if err := env.completeFlags(cmd, flags); err != nil {
		return err
	}
	access, err := env.connect()
	if err != nil {
		return err
	}
	plan, err := plans(cmd.Context(), access, flags.Options)
	if err != nil {
		return err
	}
	if len(plan.Steps) == 0 {
		env.hint("nothing is installed, so there is nothing to be done")
		return nil
	}
	if err := plan.Write(env.Out); err != nil || flags.dryRun {
		return err
	}
	for _, program := range plan.Programs {
		if err := env.find(program); err != nil {
			return err
		}
	}
	if err := env.confirm(flags.yes); err != nil {
		return err
	}
	return plan.Run(cmd.Context(), env.ErrOut, env.now)
}

func (env *environment) completeFlags(cmd *cobra.Command, flags *installFlags) (err error) {
	if cmd.Flags().Lookup("namespaces") != nil && len(flags.Namespaces) == 0 {
		if flags.Namespaces = []string{*env.flags.Namespace}; flags.Namespaces[0] == "" {
			return errors.New("name the namespaces of ControlPlanes with --namespaces, for example --namespaces openstack")
		}
	}
	flags.Run = env.run
	if flags.With != install.OLM {
		flags.Kubectl, flags.Helm, err = env.clusterOptions(cmd.Flags(), flags.With)
	}
	return err
}

// confirm asks a person. Without an answer, nothing is changed.
func (env *environment) confirm(yes bool) error {
	if yes {
		return nil
	}
	_, _ = fmt.Fprint(env.ErrOut, "Run these steps? [y/N] ")
	answer, _ := bufio.NewReader(env.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if answer == "" {
		_, _ = fmt.Fprintln(env.ErrOut)
	}
	return errors.New("nothing is changed: answer y, or use --yes")
}

// helmOptions are Helm's names of the options that select the cluster.
var helmOptions = map[string]string{
	"kubeconfig": "kubeconfig", "context": "kube-context", "server": "kube-apiserver", "as": "kube-as-user",
	"as-group": "kube-as-group", "certificate-authority": "kube-ca-file", "tls-server-name": "kube-tls-server-name",
	"insecure-skip-tls-verify": "kube-insecure-skip-tls-verify",
}

// local are options that other programs need not know.
var local = []string{"namespace", "cache-dir", "request-timeout", "disable-compression"}

// clusterOptions returns the options of the user that select the cluster, for kubectl and for
// helm. A token is refused, because every user of the machine can read arguments.
func (env *environment) clusterOptions(given *pflag.FlagSet, way string) (kubectl, helm []string, err error) {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	env.flags.AddFlags(known)
	given.Visit(func(flag *pflag.Flag) {
		if known.Lookup(flag.Name) == nil || slices.Contains(local, flag.Name) {
			return
		}
		name, helmKnows := helmOptions[flag.Name]
		switch {
		case flag.Name == "token":
			err = errors.New("--token cannot be given to another program: put the token into a kubeconfig")
		case !helmKnows && way == install.Helm:
			err = fmt.Errorf("helm has no option for --%s: select the cluster by --kubeconfig and --context", flag.Name)
		}
		for _, value := range valuesOf(flag) {
			kubectl = append(kubectl, "--"+flag.Name+"="+value)
			helm = append(helm, "--"+name+"="+value)
		}
	})
	return kubectl, helm, err
}

func valuesOf(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}
