package nova

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// The upkeep of the databases is a Job that exists while a run is due. It runs again until it has
// succeeded, and its result and the time at which it began are then in status.upkeep, from which the
// time of the next run follows. No request of a user depends on it, and so Ready does not.

// upkeepDue is the name of the need that the time of the next run has come.
const upkeepDue = "upkeep"

func upkeepNeeds(cr *novav1.Nova) []engine.Need {
	if cr.Spec.Upkeep == nil {
		return nil
	}
	return append(authorityNeeds(cr), engine.Time(nextUpkeep(cr, cr.Status.Upkeep)).As(upkeepDue))
}

// nextUpkeep returns the first time of dailyAt after the beginning of the last run.
func nextUpkeep(cr *novav1.Nova, last *novav1.UpkeepStatus) time.Time {
	if last == nil || last.LastRunAt == nil {
		return time.Time{}
	}
	began := last.LastRunAt.UTC()
	at, _ := time.Parse("15:04", cr.Spec.Upkeep.DailyAt) // the schema has checked it
	next := time.Date(began.Year(), began.Month(), began.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	if !next.After(began) {
		next = next.AddDate(0, 0, 1)
	}
	return next
}

// upgrading tells whether the release in the image of the spec may differ from that of the schemas.
// An upgrade also ends a run: its image would no longer be the one of the services.
func upgrading(cr *novav1.Nova) bool {
	return cr.Status.Upgrade != nil || cr.Status.ContainerImage != superconductorImage(cr)
}

func upkeepService(cr *novav1.Nova) workload.Service {
	return workload.Service{Instance: manageName(cr) + "-upkeep"}
}

// upkeepTask is the run after the last one.
func upkeepTask(cr *novav1.Nova) workload.Task {
	last, spec := "", cr.Spec.Upkeep
	if cr.Status.Upkeep != nil && cr.Status.Upkeep.LastRunAt != nil {
		last = cr.Status.Upkeep.LastRunAt.UTC().Format(time.RFC3339)
	}
	return nova.Upkeep(last, cmp.Or(spec.BatchSize, 1000), ptr.Deref(spec.ArchiveAfterDays, 30), spec.PurgeAfterDays)
}

func upkeep(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.Upkeep == nil || upgrading(cr) || !in.Met(upkeepDue) {
		return nil, nil
	}
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	service.Instance, service.Spec.CAFileRefs = upkeepService(cr).Instance, caFiles(cr, in)
	return service.Run(in, upkeepTask(cr))
}

// lastUpkeep returns the last run that has succeeded, nil for none.
func lastUpkeep(cr *novav1.Nova, in engine.Inputs) *novav1.UpkeepStatus {
	if cr.Spec.Upkeep == nil {
		return nil
	}
	name := upkeepService(cr).JobName(upkeepTask(cr))
	if in.Result(name) == "" {
		return cr.Status.Upkeep
	}
	last := &novav1.UpkeepStatus{Result: nova.ParseUpkeep(in.Result(name))}
	for _, job := range engine.ChildrenOf[*batchv1.Job](in) {
		if strings.HasPrefix(job.Name, name+"-") {
			last.LastRunAt = job.Status.StartTime
		}
	}
	return last
}

func reportUpkeep(cr *novav1.Nova, in engine.Inputs) { cr.Status.Upkeep = lastUpkeep(cr, in) }

func judgeUpkeep(cr *novav1.Nova, in engine.Inputs) (string, error) {
	last := lastUpkeep(cr, in)
	switch {
	case cr.Spec.Upkeep == nil:
		return "", nil
	case upgrading(cr):
		return "no run begins before the upgrade to " + superconductorImage(cr) + " is complete", nil
	case last == nil || last.LastRunAt == nil:
		return "", nil
	}
	return fmt.Sprintf("%s; the next run begins at %s", last.Result, nextUpkeep(cr, last).Format(time.RFC3339)), nil
}
