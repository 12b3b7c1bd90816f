package cell

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// copied adds to the stage of the database a check of a database at another location than
// the one that was mapped last. Before this database is a copy, no service uses it and no
// schema is synchronised: an empty database would hide the servers of the cell. The database
// of a cell that a former version of the operator has mapped is checked once.
func copied(s stage) stage {
	needs, register := s.Needs, s.Do
	s.Needs = func(cr *novav1.NovaCell) []engine.Need {
		return append(needs(cr), engine.Sampled(&novav1.NovaCell{}, time.Hour))
	}
	s.Do = func(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
		target, err := backend.Location(database(cr), in)
		if err != nil {
			return nil, err
		}
		former := cr.Status.Database
		if former != target {
			if err := checkUnused(cr, in, target); err != nil {
				return nil, err
			}
		}
		observed, err := register(ctx, cr, in)
		if cr.Status.UUID == "" || former == target {
			return observed, err
		}
		if err == nil {
			err = checkCopy(ctx, cr, in)
		}
		if err == nil {
			return observed, nil
		}
		moves := fmt.Errorf("the cell moves from database %s to %s, which must be a copy: %w", former, target, err)
		if former == "" {
			moves = fmt.Errorf("the cell is mapped, and %s must be its database or a copy: %w", target, err)
		}
		if engine.Reason(err) == engine.ReasonError {
			return nil, engine.Fail(novav1.ReasonDatabaseNotCopied, moves)
		}
		return nil, engine.Fail(engine.Reason(err), moves) // the server does not answer, or refuses the account
	}
	return s
}

// checkUnused returns an error if the database is that of another cell: a connection Secret can
// name any database.
func checkUnused(cr *novav1.NovaCell, in engine.Inputs, target string) error {
	for _, other := range engine.Listed[*novav1.NovaCell](in) {
		if other.Name != cr.Name && other.Status.Database == target {
			return engine.Fail("DatabaseInUse", fmt.Errorf("%s is the database of NovaCell %s: each cell needs a database of its own", target, other.Name)) //nolint:err113 // only a condition shows it
		}
	}
	return nil
}

// checkCopy returns an error if the database has no tables of Nova, or fewer servers than the
// cell had when they were counted last.
func checkCopy(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) error {
	content, err := backend.Cell(ctx, database(cr), in)
	if err != nil {
		return err
	}
	if servers := int(ptr.Deref(cr.Status.Servers, 0)); content.Servers < servers {
		return fmt.Errorf("it has %d servers, but the cell has %d", content.Servers, servers) //nolint:err113 // only a condition shows it
	}
	return nil
}
