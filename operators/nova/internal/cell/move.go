package cell

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/records"
)

// cells are all NovaCells of the namespace.
var cells = engine.Sampled[*novav1.NovaCell](time.Hour)

func databaseNeeds(cr *novav1.NovaCell) []engine.Need {
	return append(registration.AccountNeeds(database)(cr), cells.Need)
}

// acceptDatabase registers the database, unless another cell uses it. If it is at another location
// than the one that was mapped last, it must be a copy: before, no service uses it and no schema is
// synchronized, because an empty database would hide the servers of the cell. The database of a cell
// that a former version of the operator has mapped is checked once.
func acceptDatabase(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	target, err := registration.Location(database(cr), in)
	if err != nil {
		return nil, err
	}
	if cr.Status.UUID == "" || cr.Status.Database != target {
		if cr, err = remembered(ctx, cr, in); err != nil {
			return nil, err
		}
	}
	if uuid := cr.Spec.UUID; uuid != "" && cr.Status.UUID != uuid {
		return nil, engine.Fail(novav1.ReasonCellNotFound, notFound(cr))
	}
	former := cr.Status.Database
	if former != target {
		if err := databases.take(cr, target, cells.In(in), time.Now()); err != nil {
			return nil, engine.Fail("DatabaseInUse", err)
		}
	}
	_, err = registration.Ensure(database)(ctx, cr, in)
	if err == nil && cr.Status.UUID == "" {
		err = checkNotMapped(ctx, cr, in, target)
	}
	if cr.Status.UUID == "" || former == target {
		return engine.Observed{observedLocation: target}, err
	}
	if err == nil {
		err = checkCopy(ctx, cr, in)
	}
	return engine.Observed{observedLocation: target}, moveError(former, target, err)
}

// moveError is the outcome of the move of a database that is not a copy, or cannot be read; err may
// be nil.
func moveError(former, target string, err error) error {
	if err == nil {
		return nil
	}
	moves := fmt.Errorf("the cell moves from database %s to %s, which must be a copy: %w", former, target, err)
	if former == "" {
		moves = fmt.Errorf("the cell is mapped, and %s must be its database or a copy: %w", target, err)
	}
	if engine.Reason(err) == engine.ReasonError {
		return engine.Fail(novav1.ReasonDatabaseNotCopied, moves)
	}
	return engine.Fail(engine.Reason(err), moves) // the server does not answer, or refuses the account
}

func messageBusNeeds(cr *novav1.NovaCell) []engine.Need {
	return append(registration.AccountNeeds(messageBus)(cr), cells.Need)
}

// acceptMessageBus registers the vhost, unless another cell uses it: the services of both cells would
// answer each other's requests.
func acceptMessageBus(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	target, err := registration.BusLocation(messageBus(cr), in)
	if err != nil {
		return nil, err
	}
	if target != cr.Status.MessageBus {
		if err := messageBuses.take(cr, target, cells.In(in), time.Now()); err != nil {
			return nil, engine.Fail("MessageBusInUse", err)
		}
	}
	_, err = registration.Ensure(messageBus)(ctx, cr, in)
	return engine.Observed{observedLocation: target}, err
}

// remembered returns the cell with its entry in the API database. A NovaCell that was deleted
// and recreated knows nothing of its cell. The number of servers is the smaller one of both: a
// server may have been deleted after the last count, and before the former database was locked.
func remembered(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (*novav1.NovaCell, error) {
	entry, err := records.EntryOf(ctx, in.Secret(cr.Spec.APIDatabaseSecretRef.Name), knownUUID(cr), string(cr.Spec.CellName))
	if entry == nil || err != nil {
		return cr, err
	}
	cr = cr.DeepCopy()
	if cr.Status.UUID == "" {
		cr.Status.UUID, cr.Status.Database = entry.UUID, entry.Location
	}
	cr.Status.Servers = ptr.To(min(int32(entry.Servers), ptr.Deref(cr.Status.Servers, math.MaxInt32))) //nolint:gosec // a number of servers
	return cr, nil
}

// knownUUID returns the UUID of a cell that is mapped, or that another tool has mapped.
func knownUUID(cr *novav1.NovaCell) string { return cmp.Or(cr.Status.UUID, cr.Spec.UUID) }

func notFound(cr *novav1.NovaCell) error {
	if cr.Status.UUID == "" {
		return fmt.Errorf("the API database has no cell with UUID %s: correct uuid of the cell, or leave it out to create a cell", cr.Spec.UUID) //nolint:err113 // only a condition shows it
	}
	return fmt.Errorf("the cell is mapped with UUID %s, not %s: correct uuid of the cell, or leave it out", cr.Status.UUID, cr.Spec.UUID) //nolint:err113 // only a condition shows it
}

// checkNotMapped returns an error if the API database has another cell with this database: tools
// that create cells without a name or with another one have made it. Nova refuses a second cell
// only if both URLs are the same text.
func checkNotMapped(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs, target string) error {
	owner, err := records.OwnerOf(ctx, database(cr), in, in.Secret(cr.Spec.APIDatabaseSecretRef.Name))
	if err != nil || owner == "" {
		return err
	}
	return engine.Fail("DatabaseInUse", fmt.Errorf("%s %s in the API database: set uuid of the cell to this UUID, or name another database", target, owner)) //nolint:err113 // only a condition shows it
}

// checkCopy returns an error if the database has no tables of Nova, or fewer servers than the
// cell had when they were counted last.
func checkCopy(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) error {
	content, err := records.CellOf(ctx, database(cr), in)
	if err != nil {
		return err
	}
	if servers := int(ptr.Deref(cr.Status.Servers, 0)); content.Servers < servers {
		return fmt.Errorf("it has %d servers, but the cell has %d", content.Servers, servers) //nolint:err113 // only a condition shows it
	}
	return nil
}

// reportMove reports the database to which the cell moves.
func reportMove(cr *novav1.NovaCell, in engine.Inputs) {
	target, err := registration.Location(database(cr), in)
	if err != nil {
		return // a Secret is missing
	}
	cr.Status.NextDatabase = ""
	if cr.Status.Database != "" && cr.Status.Database != target {
		cr.Status.NextDatabase = target
	}
}
