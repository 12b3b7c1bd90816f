package cell

import (
	"regexp"
	"strings"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// schemas: the mapping is a row in the API database, and computes may come as
// soon as it is there.
func schemas(cr *novav1.NovaCell) []engine.Need {
	superconductor := &conductorv1.NovaConductor{ObjectMeta: named(cr.Spec.SuperconductorRef.Name)}
	return []engine.Need{
		engine.Condition(superconductor, conductorv1.ConditionSchemaReady),
		engine.Condition(theConductor(cr), conductorv1.ConditionSchemaReady),
	}
}

// synchronised names the need that both schemas are.
const synchronised = "synchronised"

// mapNeeds: a cell that is mapped stays so while its schema is synchronised anew
// or fails to be, and its new hosts are discovered.
func mapNeeds(*novav1.NovaCell) []engine.Need {
	return []engine.Need{engine.Done(novav1.ConditionSchemaReady).As(synchronised)}
}

// manage is nova-manage with the connections of the API database and the cell.
func manage(cr *novav1.NovaCell, in engine.Inputs) (workload.Service, error) {
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return workload.Service{}, err
	}
	service := workload.Service{
		Name:     "nova-cell",
		Instance: cr.Name,
		Project:  "nova",
		Databases: []workload.Database{
			{Section: "api_database", Secret: cr.Spec.APIDatabaseSecretRef.Name, Default: "nova_api"},
			{Section: "database", Secret: ofDatabase, Default: "nova"},
		},
		MessageBus: ofMessageBus,
	}
	service.Spec.ContainerImage = cr.Spec.Conductor.ContainerImage
	service.Spec.Pod = cr.Spec.Conductor.Pod
	return service, nil
}

// mapScript finds the cell by the UUID that is recorded, else by its name, and
// updates it, else creates it: create_cell itself ignores names and would make
// a second cell after a change of passwords (nova: cmd/manage.py). URLs come
// from the configuration, never from arguments. The result is the UUID.
// Its arguments are the name and the recorded UUID.
const mapScript = `
list=$(nova-manage cell_v2 list_cells)
column() { echo "$list" | awk -F'|' -v by="$1" -v wanted="$2" '{ gsub(/ /, "", $2); gsub(/ /, "", $3) } $by == wanted { print $3; exit }'; }
uuid=$(column 3 "$2")
[ -n "$uuid" ] || uuid=$(column 2 "$1")
if [ -n "$uuid" ]; then
  nova-manage cell_v2 update_cell --cell_uuid "$uuid" --name "$1"
else
  created=$(nova-manage cell_v2 create_cell --name "$1" --verbose)
  uuid=$(echo "$created" | tail -n 1)
fi
case $uuid in
*-*-*-*-*) ;;
*) echo "nova-manage printed no UUID of the cell but: $uuid" >&2; exit 1 ;;
esac
printf %s "$uuid" > /dev/termination-log`

func mapTask(cr *novav1.NovaCell, in engine.Inputs) (workload.Service, workload.Task, error) {
	service, err := manage(cr, in)
	if err != nil {
		return service, workload.Task{}, err
	}
	return service, workload.Task{
		Purpose:   "map",
		Script:    mapScript,
		Arguments: []string{string(cr.Spec.CellName), cr.Status.UUID},
		Depends:   []string{service.ConnectionHash(in), string(cr.Spec.CellName), mapScript},
	}, nil
}

// mapCell tells the API database where the cell's database and message bus are.
func mapCell(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	service, task, err := mapTask(cr, in)
	if err != nil {
		return nil, err
	}
	if mapped := cr.Status.Mapping; !in.Met(synchronised) && (mapped == nil || mapped.Revision != revision(task)) {
		return nil, engine.Wait("stage %s is not done", novav1.ConditionSchemaReady)
	}
	children, err := service.Configuration(in)
	return append(children, service.Job(task)), err
}

// uuidPattern is that of status.uuid. The Job's image is the user's choice, and so is
// the Job's result.
var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// revision of a mapping is the hash of the connections in it.
func revision(task workload.Task) string { return task.Depends[0] }

func reportMapping(cr *novav1.NovaCell, in engine.Inputs) {
	service, task, err := mapTask(cr, in)
	uuid := strings.TrimSpace(in.Result(service.JobName(task)))
	if err != nil || !uuidPattern.MatchString(uuid) {
		return // not mapped yet: what was known before stays
	}
	cr.Status.UUID = uuid
	cr.Status.Mapping = &novav1.CellMapping{Revision: revision(task), Scheduling: novav1.SchedulingEnabled}
}
