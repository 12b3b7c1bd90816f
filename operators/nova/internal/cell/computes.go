package cell

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/records"
)

// active returns the computes that are not retired.
func active(cr *novav1.NovaCell) []novav1.Compute {
	isRetired := func(c novav1.Compute) bool { return c.State == novav1.ComputeRetired }
	return slices.DeleteFunc(slices.Clone(cr.Spec.Computes), isRetired)
}

func children(*novav1.NovaCell) []engine.Need { return []engine.Need{engine.Children()} }

// computeNeeds waits for the conductor, without which no compute starts, and whose release
// must not be older than the release of a compute. A cell without computes does not wait.
func computeNeeds(cr *novav1.NovaCell) []engine.Need {
	needs := children(cr)
	if len(active(cr)) > 0 {
		needs = append(needs, engine.Condition(conductorNamed(cr), commonv1.ConditionReady))
	}
	return needs
}

// computeName is the name of the NovaCompute, and of its host unless its driver is Libvirt.
func computeName(cr *novav1.NovaCell, compute novav1.Compute) string {
	return cr.Name + "-" + string(compute.Name)
}

// unlisted returns the NovaComputes that have left the list and are not being deleted.
func unlisted(cr *novav1.NovaCell, in engine.Inputs) []*computev1.NovaCompute {
	return slices.DeleteFunc(engine.ChildrenOf[*computev1.NovaCompute](in), func(child *computev1.NovaCompute) bool {
		return child.DeletionTimestamp != nil || slices.ContainsFunc(cr.Spec.Computes, func(compute novav1.Compute) bool {
			return computeName(cr, compute) == child.Name
		})
	})
}

// settle is the time for which an unlisted compute is kept without a server. A deletion cannot be
// taken back, but the change of the list can: if somebody edits the NovaCell or its Nova, their
// owners restore the list within this time, and the compute goes on running.
const settle = time.Minute

// removable is observed of an unlisted compute that has had no server for this time; before, the
// number of its servers, or the time since when it has none.
const removable = "removable"

// uncounted is observed of an unlisted compute that is paused: its status may not have all of its
// hosts.
const uncounted = "paused"

// countServers counts the servers of the unlisted computes.
func countServers(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	leaving := unlisted(cr, in)
	if len(leaving) == 0 {
		return nil, nil
	}
	servers, err := records.Servers(ctx, database(cr), in)
	if err != nil {
		return nil, err
	}
	observed := engine.Observed{}
	for _, child := range leaving {
		if child.IsPaused() {
			observed[child.Name] = uncounted
			continue
		}
		count := servers[child.Name]
		for _, host := range without(child.Status.Hosts, []string{child.Name}) {
			count += servers[host]
		}
		observed[child.Name] = occupancy(count, in.Observed(novav1.ConditionComputesReady)[child.Name], time.Now())
	}
	return observed, nil
}

func occupancy(servers int, before string, now time.Time) string {
	since, err := time.Parse(time.RFC3339, before)
	switch {
	case servers > 0:
		return fmt.Sprintf("servers: %d", servers)
	case before == removable, err == nil && now.Sub(since) >= settle:
		return removable
	case err == nil:
		return before
	}
	return now.Format(time.RFC3339)
}

// countServersEvery is 0 while every compute is as listed: a change of the list counts at once.
func countServersEvery(cr *novav1.NovaCell) time.Duration {
	if meta.IsStatusConditionTrue(cr.Status.Conditions, novav1.ConditionComputesReady) {
		return 0
	}
	return 10 * time.Second
}

// computes builds one NovaCompute for each compute that is not retired, and deletes the others.
// A compute that has left the list is kept as it is while it has a server.
func computes(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	var all []engine.Child
	var names []string
	for _, compute := range active(cr) {
		child := &computev1.NovaCompute{
			ObjectMeta: named(computeName(cr, compute)),
			Spec: computev1.NovaComputeSpec{
				ComputeSettings:        compute.ComputeSettings,
				ComputeConfigSecretRef: commonv1.SecretReference{Name: computeConfigName(cr)},
				ContainerImage:         compute.ContainerImage,
				ServiceSettings:        compute.ServiceSettings,
			},
		}
		all, names = append(all, child), append(names, child.Name)
	}
	for _, child := range kept(cr, in) {
		all, names = append(all, engine.Kept(&computev1.NovaCompute{ObjectMeta: named(child.Name)})), append(names, child.Name)
	}
	return append(all, removed(in, names)...), nil
}

// kept returns the unlisted computes that cannot be removed yet.
func kept(cr *novav1.NovaCell, in engine.Inputs) []*computev1.NovaCompute {
	seen := in.Observed(novav1.ConditionComputesReady)
	return slices.DeleteFunc(unlisted(cr, in), func(child *computev1.NovaCompute) bool { return seen[child.Name] == removable })
}

// judgeComputes tells what is left on the computes that have left the list.
func judgeComputes(cr *novav1.NovaCell, in engine.Inputs) (string, error) {
	var left []string
	for _, child := range kept(cr, in) {
		left = append(left, leaves(child.Name, in.Observed(novav1.ConditionComputesReady)[child.Name]))
	}
	if len(left) == 0 {
		return "", nil
	}
	return "", engine.Wait("%s", strings.Join(left, "; "))
}

// leaves tells what an unlisted compute waits for, and what to do; seen is what countServers has
// observed of it.
func leaves(name, seen string) string {
	why := "is removed after a minute without a server: to keep it, add it (or its cell) to the list again"
	switch {
	case seen == uncounted:
		why = "is paused: remove spec.paused, so that its hosts are counted, or add it (or its cell) to the list again"
	case strings.HasPrefix(seen, "servers"):
		why = "has " + seen + ": disable its compute service and migrate or delete its servers, or add it (or its cell) to the list again"
	}
	return fmt.Sprintf("NovaCompute %s is not in computes of the cell, and %s", name, why)
}

func computeRemovalNeeds(cr *novav1.NovaCell) []engine.Need {
	return append(children(cr), novaOf(cr))
}

// withoutComputes deletes the NovaComputes, each of which asks the compute API before it goes. A Nova
// that is being deleted removes the pods of the API, while the catalog of an administrator still lists
// it. Without its Secret, a compute asks nobody.
func withoutComputes(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	all := removed(in, nil)
	if nova, remains := remaining(cr, in); nova != nil && !remains {
		all = append(all, engine.Absent(applycorev1.Secret(computeConfigName(cr), "")))
	}
	return all, nil
}

// removed deletes the NovaComputes of the cell, except some. Each removes itself while its pod
// and its configuration still exist.
func removed(in engine.Inputs, kept []string) []engine.Child {
	var all []engine.Child
	for _, child := range engine.ChildrenOf[*computev1.NovaCompute](in) {
		if !slices.Contains(kept, child.Name) {
			all = append(all, engine.TornDown(&computev1.NovaCompute{ObjectMeta: named(child.Name)}))
		}
	}
	return all
}
