package cell

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

// caPrefix is the prefix of the names of the cell's CA files in the pods of other services.
func caPrefix(cr *novav1.NovaCell) string { return string(cr.Spec.CellName) + "-" }

// authorities returns a ConfigMap for each connection of the cell with TLS, and the files that
// other services make of them. The URLs in the mapping name these files. Their names do not depend
// on their content: a renewed authority restarts the readers, and does not change the mapping.
func authorities(cr *novav1.NovaCell, in engine.Inputs) (files []commonv1.KeyReference, all []engine.Child, err error) {
	for _, account := range []registration.Account{database(cr), messageBus(cr)} {
		ca, err := account.Authority(in)
		if err != nil {
			return nil, nil, err
		}
		if ca == nil {
			continue
		}
		file := commonv1.KeyReference{Name: cr.Name + "-" + account.Purpose + "-ca", Key: config.CAFile(caPrefix(cr), account.Purpose)}
		data := map[string]string{file.Key: string(ca)}
		files, all = append(files, file), append(all, engine.Lingering(applycorev1.ConfigMap(file.Name, "").WithData(data)))
	}
	return files, all, nil
}

// reportAuthorities adds files before the mapping names them. reportMapping removes files that it
// no longer names.
func reportAuthorities(cr *novav1.NovaCell, in engine.Inputs) {
	files, _, err := authorities(cr, in)
	if err != nil {
		return
	}
	for _, file := range files {
		if !slices.Contains(cr.Status.CAFileRefs, file) {
			cr.Status.CAFileRefs = append(cr.Status.CAFileRefs, file)
		}
	}
}

func superconductorOf(cr *novav1.NovaCell) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(cr.Spec.SuperconductorRef.Name)}
}

// readers are the services of the Nova, for which a mapping waits: they work with all cells. First the
// superconductor, and then those that the Nova may not have created yet.
func readers(cr *novav1.NovaCell) []client.Object {
	nova := cr.Spec.NovaRef.Name
	return []client.Object{
		superconductorOf(cr),
		&schedulerv1.NovaScheduler{ObjectMeta: named(nova + "-scheduler")},
		metadata.Named(nova + "-metadata"),
		&apiv1.NovaAPI{ObjectMeta: named(nova + "-api")},
	}
}

// readerNeeds tell for each reader, by its name, whether no pod of it lacks a CA file of the cell.
// The superconductor must exist: when it has the files in its spec, the Nova has seen them, and
// creates the other services with them.
func readerNeeds(cr *novav1.NovaCell) []engine.Need {
	if len(cr.Status.CAFileRefs) == 0 {
		return nil
	}
	var needs []engine.Need
	for i, reader := range readers(cr) {
		need := engine.Existing(reader)
		if i > 0 {
			need = need.Optional()
		}
		needs = append(needs, need.Where(hasFiles(cr.Status.CAFileRefs)).As(reader.GetName()))
	}
	return needs
}

// hasFiles returns a check that the pods of a service have CA files, or that it has no pods.
func hasFiles(wanted []commonv1.KeyReference) func(client.Object) error {
	return func(obj client.Object) error {
		files, status := filesOf(obj)
		current := status.ObservedGeneration == obj.GetGeneration() &&
			(status.Replicas == 0 || meta.IsStatusConditionTrue(status.Conditions, commonv1.ConditionWorkloadReady))
		for _, file := range wanted {
			current = current && slices.Contains(files, file)
		}
		if !current {
			return engine.Wait("%s has pods without the CA files", obj.GetName())
		}
		return nil
	}
}

func filesOf(obj client.Object) ([]commonv1.KeyReference, commonv1.ServiceStatus) {
	switch service := obj.(type) {
	case *conductorv1.NovaConductor:
		return service.Spec.CAFileRefs, service.Status.ServiceStatus
	case *schedulerv1.NovaScheduler:
		return service.Spec.CAFileRefs, service.Status.ServiceStatus
	case *metadatav1.NovaMetadata:
		return service.Spec.CAFileRefs, service.Status.ServiceStatus
	case *apiv1.NovaAPI:
		return service.Spec.CAFileRefs, service.Status.ServiceStatus
	}
	return nil, commonv1.ServiceStatus{}
}

// awaitReaders returns an error while the mapping would name a file that a pod lacks.
func awaitReaders(cr *novav1.NovaCell, in engine.Inputs) error {
	files, _, err := authorities(cr, in)
	if err != nil || len(files) == 0 {
		return err
	}
	for _, reader := range readers(cr) {
		if !in.Met(reader.GetName()) {
			return engine.WaitAs(novav1.ReasonAuthorityNotRead, "%s does not have the certificate authorities of the cell yet: its pods restart with them before the mapping names them", reader.GetName())
		}
	}
	return nil
}
