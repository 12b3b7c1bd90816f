package command

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
)

// restartKey is the key in restartTriggers. No cell has this name: the names of cells, which the
// operator of Nova uses as keys, have no capital letters.
const restartKey = "restartedAt"

func newRestart(env *environment) *cobra.Command {
	dryRun := ""
	cmd := &cobra.Command{
		Use:   "restart NAME | KIND/NAME",
		Short: "Restart the pods of a service.",
		Long: `Restart the pods of a service, or of every service that exists because of an object, such
as a NovaCell or a ControlPlane: as a rollout, so that a service with several pods keeps
answering. The command sets the key restartedAt in spec.restartTriggers of the service
and changes no other field. The operators keep the key. Computes are not restarted.`,
		Example: `  kubectl asterism restart novaapi/demo-api -n openstack
  kubectl asterism restart demo-scheduler -n openstack --dry-run=server
  kubectl asterism restart controlplane/demo -n openstack`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.completeObject,
	}
	cmd.Flags().StringVar(&dryRun, "dry-run", "none", `"none", or "server" to let the API server check the change without storing it`)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		switch dryRun {
		case "none":
			return env.restart(cmd.Context(), arguments[0], "restarted")
		case "server":
			return env.restart(cmd.Context(), arguments[0], "restarted (server dry run)", client.DryRunAll)
		}
		return fmt.Errorf("--dry-run %q is not known: use none or server", dryRun)
	}
	return cmd
}

func (env *environment) restart(ctx context.Context, word, done string, options ...client.PatchOption) error {
	access, err := env.connect()
	if err != nil {
		return err
	}
	objects, forest, err := env.below(ctx, access, []string{word})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"restartTriggers": map[string]string{restartKey: env.now().UTC().Format(time.RFC3339)}}})
	if err != nil {
		return err
	}
	var services []*unstructured.Unstructured
	for _, o := range objects {
		switch {
		case o.GetKind() == "NovaCompute":
			env.hint("%s is not restarted: it has no restartTriggers. \"kubectl delete pod\" restarts a pod", nameOf(o))
		case isService(o):
			if paused := forest.Paused(o); paused != nil {
				return fmt.Errorf("%s is paused, so nothing is restarted: remove spec.paused of %s first", nameOf(o), nameOf(paused))
			}
			services = append(services, o)
		}
	}
	if len(services) == 0 {
		return fmt.Errorf("%s has no service to restart: name a service, such as novaapi/demo-api, or an object above it", word)
	}
	options = append(options, client.FieldOwner("kubectl-asterism"))
	for _, o := range services {
		if err := access.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), options...); err != nil {
			return fmt.Errorf("%s cannot be restarted: %w", nameOf(o), err)
		}
		_, _ = fmt.Fprintln(env.Out, nameOf(o), done)
	}
	return nil
}

func nameOf(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// isService tells whether an object is of a kind whose spec has the fields of every service.
func isService(o *unstructured.Unstructured) bool {
	example, err := cluster.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return false
	}
	spec := reflect.ValueOf(example).Elem().FieldByName("Spec")
	return spec.Kind() == reflect.Struct && spec.FieldByName("ServiceSpec").IsValid()
}
