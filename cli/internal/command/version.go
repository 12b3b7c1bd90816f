package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newVersion(env *environment) *cobra.Command {
	onlyClient := false
	namespaces := operatorNamespaces
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and the images of the operators.",
		Long: `Show the version of this program and, for each operator of the cluster, its image and
its pods.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _ = fmt.Fprintln(env.Out, "kubectl asterism", env.version)
			if onlyClient {
				return nil
			}
			return env.operators(cmd.Context(), namespaces)
		},
	}
	cmd.Flags().BoolVar(&onlyClient, "client", false, "Show only the version of this program, without a cluster")
	cmd.Flags().StringSliceVar(&namespaces, "operator-namespaces", namespaces, "Namespaces of the operators")
	return cmd
}

// operators lists the Deployments of the operators.
func (env *environment) operators(ctx context.Context, namespaces []string) error {
	access, err := env.connect()
	if err != nil {
		return err
	}
	rows := [][]string{{"NAMESPACE", "OPERATOR", "PODS", "IMAGE"}}
	for _, namespace := range namespaces {
		var list appsv1.DeploymentList
		labels := client.MatchingLabels{"app.kubernetes.io/part-of": "asterism"}
		if err := access.WithWatch.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
			env.hint("warning: Deployments of namespace %s cannot be listed: %v: ask for the role view in this namespace, or use --client", namespace, err)
			continue
		}
		for _, operator := range list.Items {
			desired := int32(1)
			if operator.Spec.Replicas != nil {
				desired = *operator.Spec.Replicas
			}
			for _, container := range operator.Spec.Template.Spec.Containers {
				rows = append(rows, []string{namespace, operator.Name, (&pods{operator.Status.ReadyReplicas, desired}).String(), container.Image})
			}
		}
	}
	if len(rows) == 1 {
		env.hint("no operator is found: name its namespace with --operator-namespaces")
		return nil
	}
	return env.table(rows)
}
