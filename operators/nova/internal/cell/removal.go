package cell

import (
	"context"
	"fmt"
	"slices"

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
		engine.Secret(cr.Spec.APIDatabaseSecretRef.Name).Optional(),
		engine.Existing(&novav1.Nova{ObjectMeta: named(cr.Spec.NovaRef.Name)}).Optional().Counting(func(obj client.Object) any {
			return isListed(cr, obj.(*novav1.Nova)) //nolint:forcetypeassert // the need names a Nova
		}))
	return needs
}

func isListed(cr *novav1.NovaCell, nova *novav1.Nova) bool {
	return slices.ContainsFunc(nova.Spec.Cells, func(cell novav1.Cell) bool { return cell.Name == cr.Spec.CellName })
}

// leaves returns true if the cell is removed from its Nova, and must still leave the API
// database: later stages delete the accounts with which this is done. Otherwise its mapping
// stays, like a retained database: a Nova that is created again under the same name finds its
// cell and the servers in the cell.
func leaves(cr *novav1.NovaCell, in engine.Inputs) bool {
	nova, exists := engine.Get[*novav1.Nova](in, cr.Spec.NovaRef.Name)
	return exists && nova.DeletionTimestamp == nil && cr.Status.Mapping != nil && !isListed(cr, nova)
}

// checkEmpty fails while a compute host or a server is in the cell.
func checkEmpty(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	if !leaves(cr, in) {
		return nil, nil
	}
	if why := lost(cr, in); why != "" {
		return nil, abandon(cr, why)
	}
	counted, err := count(ctx, cr, in)
	if err != nil && cr.Annotations[commonv1.AnnotationAbandon] == "true" {
		return nil, abandon(cr, err.Error())
	}
	if err != nil {
		return nil, err
	}
	if why := contentOf(counted).Occupants(); why != "" {
		return nil, engine.Fail("CellNotEmpty", fmt.Errorf("the cell has %s", why)) //nolint:err113 // only a condition shows it
	}
	return nil, nil
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
	return engine.Abandon("the mapping of cell %s with UUID %s in the API database: %s", cr.Spec.CellName, cr.Status.UUID, why)
}

// removalSecrets builds the connection Secrets of the Job that deletes the mapping: a deletion
// in the foreground has deleted them.
func removalSecrets(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	if !leaves(cr, in) {
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

// unmapScript deletes the mapping of the cell with the UUID in its argument. The mappings of
// deleted servers are deleted when these servers are archived; archive_deleted_rows ends with
// 1 if it has archived a row. Option --force also deletes the mappings of hosts, but not of
// servers (nova: cmd/manage.py).
const unmapScript = `
list=$(nova-manage cell_v2 list_cells)
case $list in
*" $1 "*)
  nova-manage db archive_deleted_rows --until-complete || [ $? = 1 ]
  nova-manage cell_v2 delete_cell --cell_uuid "$1" --force
  ;;
esac
printf unmapped > /dev/termination-log`

func unmapTask(cr *novav1.NovaCell) workload.Task {
	return workload.Task{
		Purpose: "unmap", Script: unmapScript, Arguments: []string{cr.Status.UUID}, Depends: []string{cr.Status.UUID, unmapScript},
	}
}

// unmap builds the Job that deletes the mapping, with its configuration.
func unmap(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	if !leaves(cr, in) {
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
	children, err := service.Configuration(in)
	return append(children, service.Job(unmapTask(cr))), err
}

// reportUnmapped tells the Nova that its services must no longer read the cell.
func reportUnmapped(cr *novav1.NovaCell, in engine.Inputs) {
	service := workload.Service{Instance: cr.Name}
	if in.Result(service.JobName(unmapTask(cr))) != "" {
		cr.Status.Mapping = nil
	}
}
