package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/internal/mask"
)

func newEvents(env *environment) *cobra.Command {
	var kinds []string
	cmd := &cobra.Command{
		Use:   "events [NAME | KIND/NAME]",
		Short: "List the events of an object and of everything below it.",
		Long: `List the events of a control plane, or of another object of Asterism, and of the objects
that exist because of it, down to the pods. The newest event is the last. Without an
argument, the events of all control planes of the namespace are listed.`,
		Example: `  kubectl asterism events -n openstack
  kubectl asterism events novacell/demo-cell1 -n openstack --types Warning`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.completeObject,
	}
	cmd.Flags().StringSliceVar(&kinds, "types", nil, "List only events of these types: Normal, Warning")
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		for _, kind := range kinds {
			if !strings.EqualFold(kind, corev1.EventTypeNormal) && !strings.EqualFold(kind, corev1.EventTypeWarning) {
				return fmt.Errorf("type %q of events is not known: use Normal or Warning", kind)
			}
		}
		return env.events(cmd.Context(), arguments, kinds)
	}
	return cmd
}

func (env *environment) events(ctx context.Context, arguments, kinds []string) error {
	access, err := env.connect()
	if err != nil {
		return err
	}
	objects, _, err := env.below(ctx, access, arguments)
	if err != nil {
		return err
	}
	known, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, o := range objects {
		known[o.GetUID()] = true
		namespaces[cmp.Or(o.GetNamespace(), metav1.NamespaceDefault)] = true // where Kubernetes keeps events of objects without one
	}
	var events []corev1.Event
	masker := mask.New()
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		var list corev1.EventList
		if err := access.WithWatch.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("events cannot be listed: %w", err)
		}
		_ = learnSecrets(ctx, access, masker, namespace) // the right is not needed to list events
		events = append(events, list.Items...)
	}
	events = slices.DeleteFunc(events, func(e corev1.Event) bool {
		return !known[e.InvolvedObject.UID] || len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, e.Type) })
	})
	if len(events) == 0 {
		env.hint("no events: Kubernetes keeps an event for an hour, unless its administrator has set another time")
		return nil
	}
	return env.table(env.eventRows(events, masker))
}

// eventRows returns the rows of events, the newest last.
func (env *environment) eventRows(events []corev1.Event, masker *mask.Masker) [][]string {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	rows := [][]string{{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, e := range events {
		age := duration.HumanDuration(env.now().Sub(lastSeen(e)))
		if count := max(e.Count, ptr.Deref(e.Series, corev1.EventSeries{}).Count); count > 1 {
			age += fmt.Sprintf(" (x%d)", count)
		}
		rows = append(rows, []string{age, e.Type, e.Reason, e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, masker.Text(strings.Join(strings.Fields(e.Message), " "))})
	}
	return rows
}
