package cell

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"
	"asterism.dev/lib/registration"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// schemas are the needs of the mapping: it is a row in the API database, and compute hosts
// may register as soon as it exists.
func schemas(cr *novav1.NovaCell) []engine.Need {
	return []engine.Need{
		engine.Condition(superconductorOf(cr), conductorv1.ConditionSchemaReady),
		engine.Condition(conductorNamed(cr), conductorv1.ConditionSchemaReady),
	}
}

// synchronized is the name of the need that both schemas are synchronized.
const synchronized = "synchronized"

// mappingNeeds does not wait for the schemas, so that a mapped cell stays mapped, and its
// new hosts are discovered, while a later synchronization runs or fails.
func mappingNeeds(cr *novav1.NovaCell) []engine.Need {
	return append(readerNeeds(cr), engine.Done(novav1.ConditionSchemaReady).As(synchronized))
}

// keepsImage returns an error if a service of the cell would get another image than it runs before
// the schema, which the service reads, is synchronized with it, or before the conductor may.
func keepsImage(cr *novav1.NovaCell, in engine.Inputs, service client.Object, runs, wanted string) error {
	if runs == wanted || in.Met(synchronized) && cr.Spec.Rollout != commonv1.RolloutHeld {
		return nil
	}
	if in.Met(synchronized) {
		return engine.Wait("%s keeps image %s until the conductor of the cell may have another one", service.GetName(), runs)
	}
	return engine.Wait("%s keeps image %s until stage %s is done", service.GetName(), runs, novav1.ConditionSchemaReady)
}

// manage describes nova-manage with the connections of the API database and of the cell.
func manage(cr *novav1.NovaCell, in engine.Inputs) (workload.Service, error) {
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return workload.Service{}, err
	}
	service := workload.Service{
		Name:     "nova-cell",
		Instance: cr.Name,
		Project:  nova.Project(),
		Databases: []workload.Database{
			nova.APIDatabase(cr.Spec.APIDatabaseSecretRef.Name),
			nova.CellDatabase(ofDatabase),
		},
		MessageBus: ofMessageBus,
		CAPrefix:   caPrefix(cr),
	}
	service.Spec.ContainerImage = cr.Spec.Conductor.ContainerImage
	service.Spec.Resources = cr.Spec.Conductor.Resources
	service.Spec.Pod = cr.Spec.Conductor.Pod
	service.Spec.Pod.TrustedCARef = nil // nova-manage calls no other service
	return service, nil
}

// mapScript finds the cell by its UUID if that is known, otherwise by its name, and updates
// it. If it finds no cell, it creates one. (create_cell ignores names, and would create a
// second cell after a change of passwords; nova: cmd/manage.py.) nova-manage reads the URLs
// from the configuration, never from arguments. The arguments of the script are the name,
// the UUID, and enable or disable; its result is the UUID.
const mapScript = `
list=$(nova-manage cell_v2 list_cells)
column() { echo "$list" | awk -F'|' -v by="$1" -v wanted="$2" '{ gsub(/^ +| +$/, "", $2); gsub(/^ +| +$/, "", $3) } $by == wanted { print $3; exit }'; }
uuid=$(column 3 "$2")
[ -n "$uuid" ] || uuid=$(column 2 "$1")
if [ -n "$uuid" ]; then
  nova-manage cell_v2 update_cell --cell_uuid "$uuid" --name "$1" "--$3"
else
  disabled=
  [ "$3" = enable ] || disabled=--disabled
  created=$(nova-manage cell_v2 create_cell --name "$1" --verbose $disabled)
  uuid=$(echo "$created" | tail -n 1)
fi
case $uuid in
*-*-*-*-*) ;;
*) echo "nova-manage printed no UUID of the cell but: $uuid" >&2; exit 1 ;;
esac
printf %s "$uuid" > /dev/termination-log`

const mapPurpose = "map"

// urlFormat runs the Job again after a change of the form of the URLs that it stores.
func urlFormat(bus map[string][]byte) string {
	if _, tells := bus[config.KeyTransientQuorumQueues]; tells {
		return "with rabbit_transient_quorum_queue"
	}
	return "with rabbit_quorum_queue"
}

func mapTask(cr *novav1.NovaCell, in engine.Inputs) (workload.Service, workload.Task, error) {
	service, err := manage(cr, in)
	if err != nil {
		return service, workload.Task{}, err
	}
	state := "enable"
	if scheduling(cr) == novav1.SchedulingDisabled {
		state = "disable"
	}
	return service, workload.Task{
		Purpose:   mapPurpose,
		Script:    mapScript,
		Arguments: []string{string(cr.Spec.CellName), knownUUID(cr), state},
		Depends:   []string{service.StoredHash(in), string(cr.Spec.CellName), mapScript, state, number(corrections(cr)), urlFormat(in.Secret(service.MessageBus))},
	}, nil
}

func scheduling(cr *novav1.NovaCell) novav1.CellScheduling {
	return cmp.Or(cr.Spec.Scheduling, novav1.SchedulingEnabled)
}

// drifted tells whether the observed mapping differs from the spec.
func drifted(cr *novav1.NovaCell) bool {
	isLost := cr.Status.UUID != "" && cr.Status.Mapping == nil
	return isLost || cr.Status.Scheduling != "" && cr.Status.Scheduling != scheduling(cr)
}

// corrections numbers the Jobs that write a mapping again because it differs. The number stays when
// the mapping is right again, so that no second Job runs for it.
func corrections(cr *novav1.NovaCell) int32 {
	if drifted(cr) {
		return cr.Status.Corrections + 1
	}
	return cr.Status.Corrections
}

// number returns "" for 0, which is no input of a Job.
func number(n int32) string { return strings.TrimPrefix(strconv.Itoa(int(n)), "0") }

// mapCell builds the Job that writes the connections of the cell into the API database. It
// waits for the schemas, and for the readers of the mapping, before the first mapping, and before
// a change of the connections.
func mapCell(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	service, task, err := mapTask(cr, in)
	if err != nil {
		return nil, err
	}
	if mapped := cr.Status.Mapping; mapped == nil || mapped.Revision != revision(task) {
		if !in.Met(synchronized) {
			return nil, engine.Wait("stage %s is not done", novav1.ConditionSchemaReady)
		}
		if err := awaitReaders(cr, in); err != nil {
			return nil, err
		}
	}
	return service.Run(in, task)
}

// uuidPattern is the pattern of status.uuid. The result of the Job is not trusted, because
// the user chooses the image of the Job.
var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// revision returns the hash of the connections in a mapping.
func revision(task workload.Task) string { return task.Depends[0] }

func reportMapping(cr *novav1.NovaCell, in engine.Inputs) {
	service, task, err := mapTask(cr, in)
	uuid := strings.TrimSpace(in.Result(service.JobName(task)))
	if err != nil || !uuidPattern.MatchString(uuid) {
		return // the Job is not complete: the status does not change
	}
	location, err := registration.Location(database(cr), in)
	if err != nil {
		return
	}
	bus, err := registration.BusLocation(messageBus(cr), in)
	if err != nil {
		return
	}
	if drifted(cr) {
		cr.Status.Corrections, cr.Status.Scheduling = corrections(cr), scheduling(cr)
	}
	cr.Status.UUID, cr.Status.Database, cr.Status.MessageBus = uuid, location, bus
	cr.Status.CAFileRefs, _, _ = authorities(cr, in) // the mapping exists, so there is no error
	cr.Status.Mapping = &novav1.CellMapping{Revision: revision(task)}
}
