package cell

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/records"
)

// countEvery is the interval between counts in the databases of the cell and of the API, with
// five short queries. It is shorter for a minute while a host of a compute is missing or not mapped:
// a compute that does not start stays away.
func countEvery(cr *novav1.NovaCell) time.Duration {
	hosts, condition := cr.Status.Hosts, meta.FindStatusCondition(cr.Status.Conditions, novav1.ConditionHostsMapped)
	isAwaited := hosts == nil || int(hosts.Mapped) < len(expected(cr)) || hosts.Unmapped > 0
	if isAwaited && (condition == nil || time.Since(condition.LastTransitionTime.Time) < time.Minute) {
		return 2 * time.Second
	}
	return 10 * time.Second
}

// Keys of the observations of countHosts.
const (
	observedUnmapped = "unmapped" // a hash of the names of the unmapped hosts, "" for none
	observedUUID     = "uuid"     // of the mapping that was read
	observedWritten  = "written"  // status.corrections of this mapping
	observedContent  = "content"  // a CellContent
	observedMissing  = "missing"  // hosts of computes that are not mapped, separated by ", "
)

// countHosts reads the content of the cell's database, and the mapping of the cell, which
// nova-manage may have changed.
func countHosts(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	cell, err := records.CellOf(ctx, database(cr), in)
	if err != nil {
		return nil, err
	}
	mapping, err := records.MappingOf(ctx, in.Secret(cr.Spec.APIDatabaseSecretRef.Name), cr.Status.UUID)
	if err != nil {
		return nil, err
	}
	var known []string // hosts with a mapping, also those that are no longer in the cell
	scheduling := novav1.CellScheduling("")
	if mapping != nil {
		known, scheduling = mapping.Hosts, novav1.SchedulingEnabled
		if mapping.Disabled {
			scheduling = novav1.SchedulingDisabled
		}
	}
	unmapped := without(cell.Hosts, known)
	content := contentOf(cell, unmapped)
	content.Scheduling = scheduling
	encoded, err := json.Marshal(content)
	observed := engine.Observed{observedContent: string(encoded), observedUUID: cr.Status.UUID, observedWritten: number(cr.Status.Corrections)}
	if len(unmapped) > 0 {
		observed[observedUnmapped] = engine.Hash(unmapped)
	}
	if missing := without(expected(cr), without(cell.Hosts, unmapped)); len(missing) > 0 {
		observed[observedMissing] = strings.Join(missing, ", ")
	}
	return observed, err
}

// expected returns the hosts that are known to come. A compute of Ironic has no host without a
// node, and the hosts of libvirt are nodes.
func expected(cr *novav1.NovaCell) []string {
	var hosts []string
	for _, compute := range active(cr) {
		if compute.Driver == sharedv1.ComputeFake {
			hosts = append(hosts, computeName(cr, compute))
		}
	}
	return hosts
}

// without returns the hosts that are not in a second list.
func without(hosts, others []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return slices.Contains(others, host) })
}

// judgeHosts waits for the hosts of computes: no server is placed on them before.
func judgeHosts(_ *novav1.NovaCell, in engine.Inputs) (string, error) {
	if missing := in.Observed(novav1.ConditionHostsMapped)[observedMissing]; missing != "" {
		return "", engine.Wait("compute hosts that are not mapped yet: %s", missing)
	}
	return "", nil
}

// contentOf returns the hosts, the servers and the oldest service of a cell.
func contentOf(cell records.Cell, unmapped []string) novav1.CellContent {
	return novav1.CellContent{
		Hosts: &novav1.CellHosts{
			Mapped:   int32(len(cell.Hosts) - len(unmapped)), //nolint:gosec // a number of rows
			Unmapped: int32(len(unmapped)),                   //nolint:gosec // a number of rows
			Names:    cell.Hosts[:min(len(cell.Hosts), novav1.MaxHostNames)],
		},
		Servers:              ptr.To(int32(min(cell.Servers, math.MaxInt32))), //nolint:gosec // bounded
		OldestServiceVersion: int32(min(cell.OldestService, math.MaxInt32)),   //nolint:gosec // bounded
		ComputeVersions:      computeVersions(cell.Computes),
	}
}

func computeVersions(counted []records.Computes) (versions []novav1.ComputeVersion) {
	for _, c := range counted[:min(len(counted), novav1.MaxComputeVersions)] {
		versions = append(versions, novav1.ComputeVersion{Version: int32(min(c.Version, math.MaxInt32)), Count: int32(min(c.Count, math.MaxInt32))}) //nolint:gosec // bounded
	}
	return versions
}

// discoverHosts builds a Job that runs once for each set of unmapped hosts, even if it leaves some
// unmapped: a host without a compute service must neither repeat the Job nor keep the cell from
// being ready. nova-manage looks for services, because it leaves out each compute_node that is
// marked as mapped: a node that was removed and comes back with its UUID still has this mark
// (compute_node_create in nova/db/main/api.py), and no mapping.
func discoverHosts(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	seen := in.Observed(novav1.ConditionHostsMapped)
	if seen[observedUnmapped] == "" {
		return nil, nil
	}
	if cr.Status.UUID == "" {
		return nil, engine.Wait("the Job that maps NovaCell %s printed no UUID: use a containerImage with Nova's nova-manage", cr.Name)
	}
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	return service.Job(in, workload.Task{
		Purpose:   "discover",
		Script:    `nova-manage cell_v2 discover_hosts --cell_uuid "$1" --by-service --verbose`,
		Arguments: []string{cr.Status.UUID},
		Depends:   []string{seen[observedUnmapped], cr.Status.UUID},
		// Otherwise hosts that arrive faster than the Job runs would never be mapped.
		Uninterrupted: true,
	})
}

func reportHosts(cr *novav1.NovaCell, in engine.Inputs) {
	seen := in.Observed(novav1.ConditionHostsMapped)
	var content novav1.CellContent
	if json.Unmarshal([]byte(seen[observedContent]), &content) != nil {
		return // not counted yet
	}
	cr.Status.Hosts, cr.Status.Servers, cr.Status.OldestServiceVersion = content.Hosts, content.Servers, content.OldestServiceVersion
	cr.Status.ComputeVersions, cr.Status.CountedGeneration = content.ComputeVersions, cr.Generation
	if seen[observedUUID] != cr.Status.UUID || seen[observedWritten] != number(cr.Status.Corrections) {
		return // the mapping was written after the count
	}
	cr.Status.Scheduling = content.Scheduling
	if content.Scheduling == "" {
		cr.Status.Mapping = nil
	}
}
