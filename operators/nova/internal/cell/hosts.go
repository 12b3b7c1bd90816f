package cell

import (
	"context"
	"strconv"
	"time"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// countEvery is the interval between counts of the hosts in the cell's database, each one
// short query. It is shorter while the cell has no host, fewer hosts than computes, or a host
// that is not mapped.
func countEvery(cr *novav1.NovaCell) time.Duration {
	if hosts := cr.Status.Hosts; hosts == nil || hosts.Mapped == 0 || int(hosts.Mapped) < len(active(cr)) || hosts.Unmapped > 0 {
		return 2 * time.Second
	}
	return 10 * time.Second
}

// Keys of the observations of countHosts.
const (
	observedMapped   = "mapped"
	observedUnmapped = "unmapped"
	observedHosts    = "hosts" // a hash of the names of the unmapped hosts
)

func countHosts(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	ofDatabase, _, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	hosts, err := backend.Hosts(ctx, in.Secret(ofDatabase))
	if err != nil {
		return nil, err
	}
	return engine.Observed{
		observedMapped:   strconv.Itoa(hosts.Mapped),
		observedUnmapped: strconv.Itoa(len(hosts.Unmapped)),
		observedHosts:    engine.Hash(hosts.Unmapped),
	}, nil
}

// discoverHosts builds a Job that runs once for each set of unmapped hosts, and not until
// every host is mapped: nova-manage does not mark a host that has a mapping and registers
// itself again. Such a host must not repeat the Job or prevent that the cell is ready.
func discoverHosts(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	seen := in.Observed(novav1.ConditionHostsMapped)
	if seen[observedUnmapped] == "0" {
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
		Depends:   []string{seen[observedHosts], cr.Status.UUID},
	})}, nil
}

func reportHosts(cr *novav1.NovaCell, in engine.Inputs) {
	seen := in.Observed(novav1.ConditionHostsMapped)
	mapped, err := strconv.ParseInt(seen[observedMapped], 10, 32)
	if err != nil {
		return // not counted yet
	}
	unmapped, err := strconv.ParseInt(seen[observedUnmapped], 10, 32)
	if err != nil {
		return
	}
	cr.Status.Hosts = &novav1.CellHosts{Mapped: int32(mapped), Unmapped: int32(unmapped)}
}
