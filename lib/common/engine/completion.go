package engine

import (
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
)

// The record of a stage, in the status, says for which inputs and children the stage was
// complete. Its field Inputs is a hash of the needs and children for a stage without a Do, and
// "<hash of needs, spec and UID>-<hash of that hash and the children>" for a stage with a Do; or
// one of these words. A stage with neither a Do nor children has no record.
const (
	outdated       = "outdated"  // Do was called for other inputs since
	abandonedStage = "abandoned" // the teardown continues without the stage
)

// newRecord returns the record of a stage that is complete now; a record without Inputs is
// not written.
func (p *passOf[T]) newRecord(s Stage[T], inputsHash string, children apply.StampedChildren) commonv1.CompletedStage {
	record := commonv1.CompletedStage{
		Stage: s.Condition, Generation: p.cr.GetGeneration(), Observed: p.in.observed[s.Condition],
		Inputs: p.in.Hash(inputsHash, children.Hashes()),
	}
	switch {
	case s.Do != nil:
		record.Inputs = inputsHash + "-" + record.Inputs
	case len(children) == 0, p.cr.GetDeletionTimestamp() != nil:
		record.Inputs = "" // no child that could become incomplete
	}
	return record
}

// writeRecord writes a record into the status. A record without Inputs removes the existing
// record.
func (p *pass) writeRecord(record commonv1.CompletedStage) {
	status := p.cr.Common()
	existing := recordOf(status, record.Stage)
	switch {
	case record.Inputs == "":
		status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return c.Stage == record.Stage })
	case existing != nil:
		*existing = record
	default:
		status.Completed = append(status.Completed, record)
	}
}

// recordOf returns the record of a stage, nil for none.
func recordOf(status *commonv1.Status, stage string) *commonv1.CompletedStage {
	for i := range status.Completed {
		if status.Completed[i].Stage == stage {
			return &status.Completed[i]
		}
	}
	return nil
}

// completedBefore tells whether a stage was complete for the Inputs of a record.
func (p *pass) completedBefore(stage, inputs string) bool {
	record := recordOf(p.before, stage)
	return record != nil && record.Inputs == inputs
}

// isUnchanged tells whether the spec has not changed since the record of a stage was written.
// An earlier process may have made other children or calls for another spec in between, and
// have ended before it has written this into the status. A Secret that has changed and changed
// back in between is not seen.
func (p *pass) isUnchanged(stage string) bool {
	record := recordOf(p.before, stage)
	return record != nil && record.Generation == p.cr.GetGeneration()
}

// callCompletedBefore tells whether a stage with a Do was complete for these inputs of Do, with
// the present or other children.
func (p *pass) callCompletedBefore(stage, inputsHash string) bool {
	record := recordOf(p.before, stage)
	return record != nil && strings.HasPrefix(record.Inputs, inputsHash+"-")
}
