package nova

import (
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// cell0UUID is the same in every Nova (nova doc: admin/cells).
const cell0UUID = "00000000-0000-0000-0000-000000000000"

func schema(cr *novav1.Nova) []engine.Need {
	return []engine.Need{engine.Condition(superconductorNamed(cr), conductorv1.ConditionSchemaReady)}
}

// mapCell0Script maps cell0 in two steps. map_cell0 reads the URL from an argument, which
// must not have a password; without the argument, it stores the URL decoded, which breaks
// passwords with special characters. So map_cell0 creates the mapping with a placeholder,
// and update_cell sets the URL of the configuration.
const mapCell0Script = `nova-manage cell_v2 map_cell0 --database_connection mysql+pymysql://pending/
nova-manage cell_v2 update_cell --cell_uuid ` + cell0UUID + ` --name cell0 --transport-url none:///`

// mapCell0 maps cell0. The stage with the release has built the configuration of the Job.
func mapCell0(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	return service.Job(in, workload.Task{Purpose: "map", Script: mapCell0Script, Depends: []string{service.DatabaseHash(in), mapCell0Script}})
}

func manageName(cr *novav1.Nova) string { return cr.Name + "-cell0" }

// manage describes nova-manage with the connections of the API database and cell0.
func manage(cr *novav1.Nova, in engine.Inputs) (workload.Service, error) {
	c, err := connections(cr, in)
	if err != nil {
		return workload.Service{}, err
	}
	service := workload.Service{
		Name:     "nova",
		Instance: manageName(cr),
		Project:  nova.Project(),
		Spec:     cr.Spec.Superconductor.Spec(image(cr), cr.Spec.ServiceDefaults),
		Databases: []workload.Database{
			nova.APIDatabase(c.APIDatabaseSecretRef.Name),
			nova.Cell0Database(c.Cell0DatabaseSecretRef.Name),
		},
		MessageBus: c.MessageBusSecretRef.Name,
	}
	// Only the connections matter to nova-manage.
	service.Spec.CustomServiceConfig, service.Spec.CustomServiceConfigSecretRefs = "", nil
	service.Spec.ExtraFiles, service.Spec.Pod.TrustedCARef = nil, nil
	return service, nil
}
