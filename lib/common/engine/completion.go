package engine

import (
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// completion is what a stage was complete for, and with which children.
type completion struct {
	inputs   string
	children []string
}

// complete records it. A stage that does nothing and has made nothing has
// nothing that could become incomplete, and no record.
func (p *pass) complete(s step, now completion) {
	status := p.cr.Common()
	if s.do == nil && len(now.children) == 0 {
		status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return c.Stage == s.condition })
		return
	}
	p.record(commonv1.CompletedStage{Stage: s.condition, Inputs: now.inputs, Children: now.children, Observed: p.in.observed[s.condition]})
}

func (p *pass) record(completed commonv1.CompletedStage) {
	status := p.cr.Common()
	if existing := completedStage(status, completed.Stage); existing != nil {
		*existing = completed
		return
	}
	status.Completed = append(status.Completed, completed)
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
