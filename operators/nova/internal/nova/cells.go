package nova

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// cells builds one NovaCell for each cell, so that a broken cell does not block the others.
func cells(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	if err != nil {
		return nil, err
	}
	var children []engine.Child
	for _, cell := range cr.Spec.Cells {
		children = append(children, &novav1.NovaCell{
			ObjectMeta: named(cellName(cr, cell)),
			Spec: novav1.NovaCellSpec{
				NovaRef:              commonv1.ObjectReference{Name: cr.Name},
				CellName:             cell.Name,
				APIAccess:            cell.APIAccess,
				DeletionPolicy:       cr.Spec.DeletionPolicy,
				Database:             cellDatabase(cr, cell),
				MessageBus:           cellMessageBus(cr, cell),
				APIDatabaseSecretRef: c.APIDatabaseSecretRef,
				IdentitySecretRef:    c.IdentitySecretRef,
				SuperconductorRef:    commonv1.ObjectReference{Name: superconductorName(cr)},
				Conductor:            cell.Conductor.WithDefaults(image(cr), cr.Spec.Pod),
				Computes:             computes(cr, cell),
			},
		})
	}
	return children, nil
}

func computes(cr *novav1.Nova, cell novav1.Cell) []novav1.Compute {
	var all []novav1.Compute
	for _, compute := range cell.Computes {
		all = append(all, compute.WithDefaults(image(cr), cr.Spec.Pod))
	}
	return all
}

// cellDatabase returns the cell's own server or Secret, or a database on the Nova's server.
func cellDatabase(cr *novav1.Nova, cell novav1.Cell) novav1.NovaCellDatabase {
	connection := novav1.Connection{Server: cr.Spec.Database.Server, AdminSecretRef: cr.Spec.Database.AdminSecretRef}
	if cell.Database != nil {
		connection = *cell.Database
	}
	database := novav1.NovaCellDatabase{Connection: connection}
	if !connection.Given() {
		database.Name = prefix(cr) + "_" + string(cell.Name)
	}
	return database
}

// cellMessageBus returns the cell's own RabbitMQ or Secret, or a vhost on the Nova's
// RabbitMQ.
func cellMessageBus(cr *novav1.Nova, cell novav1.Cell) novav1.NovaCellMessageBus {
	bus := novav1.CellMessageBus{Connection: cr.Spec.MessageBus.Connection, ManagementPort: cr.Spec.MessageBus.ManagementPort}
	if cell.MessageBus != nil {
		bus = *cell.MessageBus
	}
	vhost := novav1.NovaCellMessageBus{CellMessageBus: bus, QueueType: cr.Spec.MessageBus.QueueType}
	if !bus.Given() {
		vhost.Vhost = prefix(cr) + "_" + string(cell.Name)
	}
	return vhost
}

// reportCells copies the state of each cell into the status of the Nova.
func reportCells(cr *novav1.Nova, in engine.Inputs) {
	var table []novav1.CellStatus
	for _, cell := range cr.Spec.Cells {
		row := novav1.CellStatus{Name: string(cell.Name), Ready: metav1.ConditionUnknown}
		if child, ok := engine.Get[*novav1.NovaCell](in, cellName(cr, cell)); ok {
			describeCell(&row, child)
		}
		table = append(table, row)
	}
	cr.Status.Cells = table
}

func countCells(cr *novav1.Nova, _ engine.Inputs) {
	cr.Status.ReadyCells, cr.Status.DesiredCells = 0, int32(len(cr.Spec.Cells))
	for _, cell := range cr.Status.Cells {
		if cell.Ready == metav1.ConditionTrue {
			cr.Status.ReadyCells++
		}
	}
}

func describeCell(row *novav1.CellStatus, cell *novav1.NovaCell) {
	row.UUID, row.Hosts, row.ComputeConfigSecretRef = cell.Status.UUID, cell.Status.Hosts, cell.Status.ComputeConfigSecretRef
	condition := meta.FindStatusCondition(cell.Status.Conditions, commonv1.ConditionReady)
	if condition == nil || cell.Status.ObservedGeneration != cell.Generation {
		return
	}
	row.Ready = condition.Status
	if condition.Status != metav1.ConditionTrue {
		row.Reason, row.Message = condition.Reason, condition.Message
	}
}
