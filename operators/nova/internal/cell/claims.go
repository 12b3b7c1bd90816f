package cell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// observedLocation is the location that the stage of a database or a message bus has accepted. It
// is in the status of a cell before the cell is mapped, and while its mapping changes.
const observedLocation = "location"

// A claim lasts longer than the Do that makes it and the write of its status together.
const claimDuration = time.Minute

// claim is a location that a cell is about to use, and whose status does not tell it yet.
type claim struct {
	location string
	ends     time.Time
}

// claims keep two cells from using the same database or message bus: connection Secrets can name
// any. Cells that come in the same moment do not see each other's status. One process reconciles
// all of them, so that the first claim counts.
type claims struct {
	condition string                        // of the stage that accepts the location
	mapped    func(*novav1.NovaCell) string // the location in the mapping of a cell

	mu   sync.Mutex
	made map[client.ObjectKey]claim // by cell
}

var (
	databases = claims{
		condition: novav1.ConditionDatabaseReady,
		mapped:    func(cell *novav1.NovaCell) string { return cell.Status.Database },
	}
	messageBuses = claims{
		condition: novav1.ConditionMessageBusReady,
		mapped:    func(cell *novav1.NovaCell) string { return cell.Status.MessageBus },
	}
)

// take claims a location for a cell. It returns an error with the name of another cell of the
// namespace that uses the location or has claimed it; all are the NovaCells of the namespace.
func (c *claims) take(cr *novav1.NovaCell, location string, all []*novav1.NovaCell, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := client.ObjectKeyFromObject(cr)
	for _, other := range all {
		if other.Name != cr.Name && (overlap(c.mapped(other), location) || overlap(c.accepted(other), location)) {
			return inUse(location, other.Name)
		}
	}
	maps.DeleteFunc(c.made, func(_ client.ObjectKey, made claim) bool { return now.After(made.ends) })
	for cell, made := range c.made {
		if cell.Namespace == own.Namespace && cell != own && overlap(made.location, location) {
			return inUse(location, cell.Name)
		}
	}
	if c.made == nil {
		c.made = map[client.ObjectKey]claim{}
	}
	c.made[own] = claim{location, now.Add(claimDuration)}
	return nil
}

// accepted returns the location that the stage of a cell has accepted last, "" for none.
func (c *claims) accepted(cell *novav1.NovaCell) string {
	for _, stage := range cell.Status.Completed {
		if stage.Stage == c.condition {
			return stage.Observed[observedLocation]
		}
	}
	return ""
}

func inUse(location, cell string) error {
	return fmt.Errorf("%s is in use by NovaCell %s: each cell needs a database and a message bus of its own", location, cell) //nolint:err113 // only a condition shows it
}

// overlap tells whether two locations, host:port,…/name, are the same database or vhost. One common
// host suffices: the hosts of a bus are members of one cluster, in any order.
func overlap(one, other string) bool {
	hosts, name, _ := strings.Cut(one, "/")
	otherHosts, otherName, _ := strings.Cut(other, "/")
	return name == otherName && slices.ContainsFunc(strings.Split(hosts, ","), func(host string) bool {
		return slices.Contains(strings.Split(otherHosts, ","), host)
	})
}
