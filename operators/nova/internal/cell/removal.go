package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/registration"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/records"
)

// removalNeeds are met without the accounts: the teardown continues if they are lost.
func removalNeeds(cr *novav1.NovaCell) []engine.Need {
	needs := append(registration.DiagnosisNeeds(database, messageBus)(cr),
		engine.Secret(cr.Spec.APIDatabaseSecretRef.Name).Optional())
	return append(needs, novaOf(cr))
}

// novaOf is met without the Nova. Its deletion, its policy, and whether it lists the cell, are inputs.
func novaOf(cr *novav1.NovaCell) engine.Need {
	return engine.Existing(&novav1.Nova{ObjectMeta: named(cr.Spec.NovaRef.Name)}).Optional().Counting(func(obj client.Object) any {
		nova := obj.(*novav1.Nova) //nolint:forcetypeassert // the need names a Nova
		return []any{isListed(cr, nova), nova.DeletionTimestamp != nil, nova.Spec.DeletionPolicy}
	})
}

func isListed(cr *novav1.NovaCell, nova *novav1.Nova) bool {
	return slices.ContainsFunc(nova.Spec.Cells, func(cell novav1.Cell) bool { return cell.Name == cr.Spec.CellName })
}

// databaseRemoved removes the accounts of the database, and drops it if both the NovaCell and its Nova
// say so: a NovaCell that has left the list of its Nova, or is deleted with it, may have a former
// deletionPolicy.
func databaseRemoved() stage {
	s := registration.Remove(stage{Condition: "DatabaseRemoved"}, database)
	needs, remove := s.Needs, s.Do
	s.Needs = func(cr *novav1.NovaCell) []engine.Need { return append(needs(cr), novaOf(cr)) }
	s.Do = func(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
		cr = cr.DeepCopy()
		cr.Spec.DeletionPolicy = policy(cr, in)
		return remove(ctx, cr, in)
	}
	return s
}

// policy is Delete only if the Nova, unless it is gone, says so too.
func policy(cr *novav1.NovaCell, in engine.Inputs) novav1.DeletionPolicy {
	if nova, exists := engine.Get[*novav1.Nova](in, cr.Spec.NovaRef.Name); exists && nova.Spec.DeletionPolicy != novav1.DeletionDelete {
		return nova.Spec.DeletionPolicy
	}
	return cr.Spec.DeletionPolicy
}

// remaining returns the Nova of the cell, unless it is being deleted as well. Then the mapping
// stays, like a retained database: a Nova that is created again under the same name finds its
// cell and the servers in the cell.
func remaining(cr *novav1.NovaCell, in engine.Inputs) (*novav1.Nova, bool) {
	nova, exists := engine.Get[*novav1.Nova](in, cr.Spec.NovaRef.Name)
	return nova, exists && nova.DeletionTimestamp == nil
}

// withoutMapJobs stops the Job that maps the cell: it could create a mapping after the check of
// checkEmpty.
func withoutMapJobs(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	var all []engine.Child
	prefix := workload.Service{Instance: cr.Name}.JobName(workload.Task{Purpose: mapPurpose}) + "-"
	for _, job := range engine.ChildrenOf[*batchv1.Job](in) {
		if ended := job.Status.Succeeded+job.Status.Failed > 0; strings.HasPrefix(job.Name, prefix) && !ended {
			all = append(all, engine.Absent(applybatchv1.Job(job.Name, "")))
		}
	}
	return all, nil
}

const (
	emptied       = "Emptied"
	unmappedStage = "Unmapped"
	// observedLeaving is the UUID of a cell that must leave the API database: it is removed from
	// its Nova, and later stages delete the accounts with which this is done.
	observedLeaving = "leaving"
)

func leaving(in engine.Inputs) string { return in.Observed(emptied)[observedLeaving] }

// checkEmpty fails while a compute host or a server is in the cell.
func checkEmpty(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	nova, remains := remaining(cr, in)
	if !remains {
		return nil, nil
	}
	listed := isListed(cr, nova)
	if why := lost(cr, in); why != "" && !listed && cr.Status.Mapping != nil {
		return nil, abandon(cr, why)
	}
	uuid, counted, err := contents(ctx, cr, in)
	if err != nil && cr.Annotations[commonv1.AnnotationAbandon] == "true" {
		return nil, abandon(cr, err.Error())
	}
	if err != nil {
		return nil, err
	}
	why := counted.Occupants()
	if why != "" && cr.Annotations[commonv1.AnnotationAbandon] == "true" && policy(cr, in) != novav1.DeletionDelete {
		return nil, abandon(cr, "the cell has "+why)
	}
	if why != "" {
		why = "the cell has " + why + ": migrate or delete the servers, and remove the compute hosts"
		if listed {
			why += "; Nova " + nova.Name + " lists the cell, and creates it again"
		}
		return nil, engine.Fail("CellNotEmpty", errors.New(why)) //nolint:err113 // only a condition shows it
	}
	if listed {
		return nil, nil
	}
	return engine.Observed{observedLeaving: uuid}, nil
}

// contents returns the UUID of a mapped cell, and what is in the cell. A NovaCell may not know
// of its mapping, because it has not seen the result of the Job.
func contents(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (uuid string, content novav1.CellContent, err error) {
	uuid = cr.Status.UUID
	if cr.Status.Mapping == nil {
		api := in.Secret(cr.Spec.APIDatabaseSecretRef.Name)
		if api == nil {
			return "", content, nil
		}
		entry, err := records.EntryOf(ctx, api, knownUUID(cr), string(cr.Spec.CellName))
		if err != nil {
			return "", content, err
		}
		// An entry that has only the name of the cell may be another one, if the UUID is mistyped.
		if entry == nil || cr.Spec.UUID != "" && entry.UUID != knownUUID(cr) {
			content.Servers, err = unmappedServers(ctx, cr, in)
			return "", content, err
		}
		uuid = entry.UUID
	}
	counted, err := count(ctx, cr, in)
	return uuid, contentOf(counted, nil), err
}

// unmappedServers counts the servers of a cell without a mapping, for example one that another
// control plane has used. The database of a cell that was never mapped may not answer, or not exist.
func unmappedServers(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (*int32, error) {
	counted, err := count(ctx, cr, in)
	if err != nil && (cr.Status.UUID == "" || lost(cr, in) != "") {
		return nil, nil
	}
	return contentOf(counted, nil).Servers, err
}

// count counts in the database of the mapping. During a move, the spec has another database.
func count(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (found records.Cell, err error) {
	location, err := registration.Location(database(cr), in)
	if err == nil && cr.Status.Database != "" && cr.Status.Database != location {
		return found, engine.Fail(novav1.ReasonDatabaseNotCopied, fmt.Errorf("the cell is deleted while its database moves from %s to %s: set spec.database to %[1]s again", cr.Status.Database, location)) //nolint:err113 // only a condition shows it
	}
	if err != nil {
		return found, err
	}
	return records.CellOf(ctx, database(cr), in)
}

// lost returns the Secret or the Service without which the mapping cannot be deleted.
func lost(cr *novav1.NovaCell, in engine.Inputs) string {
	if in.Secret(cr.Spec.APIDatabaseSecretRef.Name) == nil {
		return "Secret " + cr.Spec.APIDatabaseSecretRef.Name + " no longer exists"
	}
	if _, _, err := secrets(cr, in); err != nil {
		return err.Error()
	}
	return ""
}

func abandon(cr *novav1.NovaCell, why string) error {
	return engine.Abandon("the mapping of cell %s with UUID %s in the API database: %s", cr.Spec.CellName, cmp.Or(cr.Status.UUID, "unknown"), why)
}

// removalSecrets builds the connection Secrets of the Job that deletes the mapping: a deletion
// in the foreground has deleted them.
func removalSecrets(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	if leaving(in) == "" {
		return nil, nil
	}
	var all []engine.Child
	for _, b := range []registration.Account{database(cr), messageBus(cr)} {
		_, secret, err := b.Secret(in)
		if err != nil {
			return nil, err
		}
		all = append(all, secret...)
	}
	return all, nil
}

// unmapScript deletes the mapping of the cell with the UUID in its argument. It updates the mapping
// first, because delete_cell connects to the database of the mapping, which may have the password
// or the CA file of former connections. Option --force also deletes the mappings of hosts and of
// deleted servers; while a server exists, the command fails (nova: cmd/manage.py).
const unmapScript = `
list=$(nova-manage cell_v2 list_cells)
case $list in
*" $1 "*)
  nova-manage cell_v2 update_cell --cell_uuid "$1"
  nova-manage cell_v2 delete_cell --cell_uuid "$1" --force
  ;;
esac
printf unmapped > /dev/termination-log`

func unmapTask(uuid string) workload.Task {
	return workload.Task{Purpose: "unmap", Script: unmapScript, Arguments: []string{uuid}, Depends: []string{uuid, unmapScript}}
}

// observeLeaving calls no server: the engine records the UUID when the stage is done.
func observeLeaving(_ context.Context, _ *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	return engine.Observed{observedLeaving: leaving(in)}, nil
}

// isUnmapped tells whether an earlier pass has deleted the mapping. Then it is not left behind if a
// user abandons one of the later stages, or if they delete what the Job needs.
func isUnmapped(cr *novav1.NovaCell, uuid string) bool {
	return slices.ContainsFunc(cr.Status.Completed, func(completed commonv1.CompletedStage) bool {
		return completed.Stage == unmappedStage && completed.Observed[observedLeaving] == uuid
	})
}

// unmap builds the Job that deletes the mapping, with its configuration.
func unmap(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	uuid := leaving(in)
	if uuid == "" || isUnmapped(cr, uuid) {
		return nil, nil
	}
	if why := lost(cr, in); why != "" {
		return nil, abandon(cr, why)
	}
	if cr.Annotations[commonv1.AnnotationAbandon] == "true" {
		return nil, abandon(cr, "annotation "+commonv1.AnnotationAbandon)
	}
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	return service.Run(in, unmapTask(uuid))
}

// reportUnmapped tells the Nova that its services must no longer read the cell. Without the UUID,
// the check of the content does not need the accounts any more, which later stages remove.
func reportUnmapped(cr *novav1.NovaCell, in engine.Inputs) {
	service := workload.Service{Instance: cr.Name}
	if in.Result(service.JobName(unmapTask(leaving(in)))) != "" {
		cr.Status.Mapping, cr.Status.UUID = nil, ""
	}
}
