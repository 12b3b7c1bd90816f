package nova

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// cell0UUID is the same in every Nova (nova doc: admin/cells).
const cell0UUID = "00000000-0000-0000-0000-000000000000"

// cell0Prefix is the prefix of the name of cell0's CA file, which its mapping names.
const cell0Prefix = "cell0-"

// cell0Authority returns the CA file of cell0's database, and the ConfigMap with it; nil without TLS.
// The file of the [database] of a service would do only for the services of the Nova: the conductor
// of a cell has another database there.
func cell0Authority(cr *novav1.Nova, in engine.Inputs) (*commonv1.KeyReference, []engine.Child, error) {
	ca, err := cell0Database(cr).Authority(in)
	if err != nil || ca == nil {
		return nil, nil, err
	}
	file := commonv1.KeyReference{Name: cr.Name + cell0Authorities, Key: config.CAFile(cell0Prefix, "database")}
	data := map[string]string{file.Key: string(ca)}
	return &file, []engine.Child{engine.Lingering(applycorev1.ConfigMap(file.Name, "").WithData(data))}, nil
}

// cell0Authorities is the end of the name of cell0Authority's ConfigMap.
const cell0Authorities = "-cell0-database-ca"

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
	if file, _, err := cell0Authority(cr, in); err != nil {
		return service, err
	} else if file != nil {
		service.CAPrefix = cell0Prefix
	}
	// Only the connections matter to nova-manage.
	service.Spec.CustomServiceConfig, service.Spec.CustomServiceConfigSecretRefs = "", nil
	service.Spec.ExtraFiles, service.Spec.Pod.TrustedCARef = nil, nil
	return service, nil
}
