package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"asterism.dev/cli/cluster"
)

// completionTime bounds the wait of somebody who has pressed Tab.
const completionTime = 3 * time.Second

// completeObject completes the argument KIND/NAME with the objects of Asterism in the namespace.
func (env *environment) completeObject(cmd *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	access, err := env.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	objects, _, err := access.Objects(ctx, access.Namespace, cluster.Own()...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, o := range objects {
		names = append(names, strings.ToLower(o.GetKind())+"/"+o.GetName())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
