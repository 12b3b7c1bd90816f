package engine

import (
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// record for which inputs, and with which children, a stage was complete; without
// inputs, drop the record.
func (p *pass) record(completed commonv1.CompletedStage) {
	status := p.cr.Common()
	existing := completedStage(status, completed.Stage)
	switch {
	case completed.Inputs == "":
		status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return c.Stage == completed.Stage })
	case existing != nil:
		*existing = completed
	default:
		status.Completed = append(status.Completed, completed)
	}
}

func completedStage(status *commonv1.Status, stage string) *commonv1.CompletedStage {
	for i := range status.Completed {
		if status.Completed[i].Stage == stage {
			return &status.Completed[i]
		}
	}
	return nil
}

// completedFor says whether the stage was complete for just these inputs and
// children.
func (p *pass) completedFor(stage, inputs string) bool {
	completed := completedStage(p.before, stage)
	return completed != nil && completed.Inputs == inputs
}

// doneFor says whether a stage with a Do was complete for these inputs.
func (p *pass) doneFor(s step, inputs string) bool {
	completed := completedStage(p.before, s.condition)
	return completed != nil && strings.HasPrefix(completed.Inputs, inputs+"-")
}
