package cell

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/records"
)

// countEvery is the interval between counts in the cell's database, with four short queries.
// It is shorter while the cell has no host, fewer hosts than computes, a host that is not
// mapped, or another scheduling than its spec.
func countEvery(cr *novav1.NovaCell) time.Duration {
	hosts := cr.Status.Hosts
	if hosts == nil || cr.Status.Scheduling != scheduling(cr) || hosts.Mapped == 0 || int(hosts.Mapped) < len(cr.Spec.Computes) || hosts.Unmapped > 0 {
		return 2 * time.Second
	}
	return 10 * time.Second
}

// Keys of the observations of countHosts.
const (
	observedUnmapped = "unmapped" // a hash of the names of the unmapped hosts, "" for none
	observedUUID     = "uuid"     // of the mapping that was read
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
	content := contentOf(cell)
	switch {
	case mapping == nil:
	case mapping.Disabled:
		content.Scheduling = novav1.SchedulingDisabled
	default:
		content.Scheduling = novav1.SchedulingEnabled
	}
	encoded, err := json.Marshal(content)
	observed := engine.Observed{observedContent: string(encoded), observedUUID: cr.Status.UUID}
	if len(cell.Unmapped) > 0 {
		observed[observedUnmapped] = engine.Hash(cell.Unmapped)
	}
	if missing := missing(cr, cell.Mapped); len(missing) > 0 {
		observed[observedMissing] = strings.Join(missing, ", ")
	}
	return observed, err
}

// missing returns the hosts that are known to come, and are not mapped. A compute of Ironic
// has no host without a node, and the hosts of libvirt are nodes.
func missing(cr *novav1.NovaCell, mapped []string) []string {
	var hosts []string
	for _, compute := range cr.Spec.Computes {
		if host := computeName(cr, compute); compute.Driver == sharedv1.ComputeFake && !slices.Contains(mapped, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// judgeHosts waits for the hosts of computes: no server is placed on them before.
func judgeHosts(_ *novav1.NovaCell, in engine.Inputs) (string, error) {
	if missing := in.Observed(novav1.ConditionHostsMapped)[observedMissing]; missing != "" {
		return "", engine.Wait("compute hosts that are not mapped yet: %s", missing)
	}
	return "", nil
}

// contentOf returns the hosts, the servers and the oldest service of a cell.
func contentOf(cell records.Cell) novav1.CellContent {
	names := slices.Sorted(slices.Values(slices.Concat(cell.Mapped, cell.Unmapped)))
	return novav1.CellContent{
		Hosts: &novav1.CellHosts{
			Mapped:   int32(len(cell.Mapped)),   //nolint:gosec // a number of rows
			Unmapped: int32(len(cell.Unmapped)), //nolint:gosec // a number of rows
			Names:    names[:min(len(names), novav1.MaxHostNames)],
		},
		Servers:              ptr.To(int32(min(cell.Servers, math.MaxInt32))), //nolint:gosec // bounded
		OldestServiceVersion: int32(min(cell.OldestService, math.MaxInt32)),   //nolint:gosec // bounded
	}
}

// discoverHosts builds a Job that runs once for each set of unmapped hosts, and not until
// every host is mapped: nova-manage does not mark a host that has a mapping and registers
// itself again. Such a host must not repeat the Job or prevent that the cell is ready.
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
	return []engine.Child{service.Job(workload.Task{
		Purpose:   "discover",
		Script:    `nova-manage cell_v2 discover_hosts --cell_uuid "$1" --verbose`,
		Arguments: []string{cr.Status.UUID},
		Depends:   []string{seen[observedUnmapped], cr.Status.UUID},
	})}, nil
}

func reportHosts(cr *novav1.NovaCell, in engine.Inputs) {
	seen := in.Observed(novav1.ConditionHostsMapped)
	var content novav1.CellContent
	if json.Unmarshal([]byte(seen[observedContent]), &content) != nil {
		return // not counted yet
	}
	cr.Status.Hosts, cr.Status.Servers, cr.Status.OldestServiceVersion = content.Hosts, content.Servers, content.OldestServiceVersion
	if seen[observedUUID] != cr.Status.UUID {
		return // the cell was mapped after the count
	}
	cr.Status.Scheduling = content.Scheduling
	if content.Scheduling == "" {
		cr.Status.Mapping = nil
	}
}
