package nova

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

// globalServes is the name of the need that the global metadata service is ready.
const globalServes = "global metadata"

func cellNeeds(cr *novav1.Nova) []engine.Need {
	return append(lastTriggers(cr),
		engine.Condition(metadata.Named(metadataName(cr)), commonv1.ConditionReady).As(globalServes),
		engine.AllOf(updated(superconductorNamed(cr), superconductorImage(cr))...).As(superconductorUpdated))
}

// cells builds one NovaCell for each cell, so that a broken cell does not block the others.
// A NovaCell that is no longer listed is deleted when its cell is empty.
func cells(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	c, err := connections(cr, in)
	if err != nil {
		return nil, err
	}
	var children []engine.Child
	for _, cell := range cr.Spec.Cells {
		children = append(children, &novav1.NovaCell{
			ObjectMeta: named(novaCellName(cr, cell)),
			Spec: novav1.NovaCellSpec{
				NovaRef:                commonv1.ObjectReference{Name: cr.Name},
				CellName:               cell.Name,
				UUID:                   cell.UUID,
				APIDatabaseAccess:      cell.APIDatabaseAccess,
				Scheduling:             cell.Scheduling,
				DeletionPolicy:         cr.Spec.DeletionPolicy,
				Database:               cellDatabase(cr, cell),
				MessageBus:             cellMessageBus(cr, cell),
				APIDatabaseSecretRef:   c.APIDatabaseSecretRef,
				Cell0DatabaseSecretRef: &c.Cell0DatabaseSecretRef,
				IdentitySecretRef:      c.IdentitySecretRef,
				SharedConnections:      sharedConnections(cr, in),
				SuperconductorRef:      commonv1.ObjectReference{Name: superconductorName(cr)},
				Conductor:              cell.Conductor.WithDefaults(image(cr), cr.Spec.ServiceDefaults),
				Rollout:                cellRollout(cr, cell, in),
				RestartTriggers:        cellTriggers(cr, in),
				DataMigrations:         dataMigrations(cr, in),
				MetadataSecretRef:      cell.MetadataSecretRef,
				Metadata:               cellMetadata(cr, cell, in),
				NoVNCProxy:             cell.NoVNCProxy.WithDefaults(image(cr), cr.Spec.ServiceDefaults),
				Computes:               computes(cr, cell, listedComputes(cr, cell, in)),
			},
		})
	}
	for _, child := range unlisted(cr, in) {
		children = append(children, leaving(child))
	}
	return children, nil
}

// leaving treats a NovaCell that is no longer listed. When its cell has no server, its computes leave
// the list of the cell with it, and it is deleted when they are gone, and compute hosts outside of this
// cluster too.
func leaving(cell *novav1.NovaCell) engine.Child {
	child := &novav1.NovaCell{ObjectMeta: named(cell.Name)}
	switch {
	case whyNotEmpty(cell) == "":
		return engine.TornDown(child)
	case isCounted(cell) && *cell.Status.Servers == 0 && len(cell.Spec.Computes) > 0:
		child.Spec = *cell.Spec.DeepCopy()
		child.Spec.Computes = nil
		return child
	}
	return engine.Kept(child)
}

// isCounted tells whether the status has the servers that were counted for the newest spec, and that
// are counted still.
func isCounted(cell *novav1.NovaCell) bool {
	hosts := meta.FindStatusCondition(cell.Status.Conditions, novav1.ConditionHostsMapped)
	return cell.DeletionTimestamp == nil && !cell.IsPaused() && cell.Status.NextDatabase == "" && cell.Status.Servers != nil &&
		cell.Status.CountedGeneration == cell.Generation && hosts != nil && hosts.Status != metav1.ConditionUnknown
}

// unlisted returns the NovaCells of cells that are removed from the spec.
func unlisted(cr *novav1.Nova, in engine.Inputs) []*novav1.NovaCell {
	return slices.DeleteFunc(engine.ChildrenOf[*novav1.NovaCell](in), func(child *novav1.NovaCell) bool {
		return slices.ContainsFunc(cr.Spec.Cells, func(cell novav1.Cell) bool { return novaCellName(cr, cell) == child.Name })
	})
}

// whyNotEmpty tells why a cell cannot be removed and what to do, "" if it can. The NovaCell counts again
// when it is deleted. A NovaCell that is being deleted cannot be kept.
func whyNotEmpty(cell *novav1.NovaCell) string {
	switch {
	case cell.DeletionTimestamp != nil || cell.Status.UUID == "":
		return ""
	case cell.IsPaused():
		return fmt.Sprintf("NovaCell %s is paused: its compute hosts and servers are not counted", cell.Name)
	case cell.Status.ObservedGeneration != cell.Generation:
		return fmt.Sprintf("its operator has not seen generation %d of NovaCell %s yet", cell.Generation, cell.Name)
	case cell.Status.NextDatabase != "":
		return fmt.Sprintf("its database moves to %s: complete the copy, see DatabaseReady of NovaCell %s, or add the cell to spec.cells again", cell.Status.NextDatabase, cell.Name)
	case cell.Status.Servers == nil || cell.Status.CountedGeneration != cell.Generation:
		if cell.Annotations[commonv1.AnnotationAbandon] == "true" && cell.Status.Occupants() == "" {
			return "" // its database may be gone for good; the NovaCell counts again what it can
		}
		return fmt.Sprintf("its compute hosts and servers are not counted yet: if this lasts, see the conditions of NovaCell %s", cell.Name)
	}
	return whatIsLeft(cell)
}

// whatIsLeft tells what is in a cell that was counted, and what to do; "" for nothing.
func whatIsLeft(cell *novav1.NovaCell) string {
	occupants, computes := cell.Status.Occupants(), meta.FindStatusCondition(cell.Status.Conditions, novav1.ConditionComputesReady)
	switch hasComputes, hasServers := len(cell.Spec.Computes) > 0, *cell.Status.Servers > 0; {
	case occupants == "":
		return ""
	case !hasServers && !hasComputes && computes != nil && computes.Status == metav1.ConditionFalse:
		return fmt.Sprintf("has %s: %s", occupants, computes.Message)
	case !hasServers && hasComputes && !isCounted(cell):
		return fmt.Sprintf("its computes leave when its servers are counted again: see the conditions of NovaCell %s", cell.Name)
	}
	return fmt.Sprintf("has %s: remove the servers, and the compute hosts outside this cluster, or add the cell to spec.cells again", occupants)
}

// judgeCells waits until the cells that are removed from the spec are empty, and until the
// global metadata service has replaced those of the cells.
func judgeCells(cr *novav1.Nova, in engine.Inputs) (string, error) {
	var kept []string
	for _, child := range unlisted(cr, in) {
		if why := whyNotEmpty(child); why != "" {
			kept = append(kept, fmt.Sprintf("cell %s is not in spec.cells, but %s", child.Spec.CellName, why))
		}
	}
	if len(kept) == 0 {
		return "", judgeMetadata(cr, in)
	}
	return "", engine.Wait("%s", strings.Join(kept, "; "))
}

// judgeMetadata waits while a cell has a metadata service that is no longer wanted.
func judgeMetadata(cr *novav1.Nova, in engine.Inputs) error {
	for _, cell := range cr.Spec.Cells {
		child, exists := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		if exists && child.Spec.Metadata != nil && !cellsHaveMetadata(cr) {
			return engine.Wait("NovaCell %s has its metadata service until NovaMetadata %s is ready", child.Name, metadataName(cr))
		}
	}
	return nil
}

func cellsHaveMetadata(cr *novav1.Nova) bool {
	return cr.Spec.Metadata.Mode == novav1.MetadataPerCell || cr.Spec.Metadata.Mode == novav1.MetadataGlobalAndPerCell
}

// cellMetadata returns the settings of a cell's own metadata service, nil for none. A service
// that is no longer wanted runs until the global service is ready.
func cellMetadata(cr *novav1.Nova, cell novav1.Cell, in engine.Inputs) *novav1.CellMetadata {
	if !cellsHaveMetadata(cr) {
		child, exists := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		if !exists || child.Spec.Metadata == nil || in.Met(globalServes) {
			return nil
		}
	}
	template := cr.Spec.Metadata
	return &novav1.CellMetadata{
		ServiceTemplate: template.WithDefaults(image(cr), cr.Spec.ServiceDefaults),
		WSGISettings:    template.WSGISettings,
		Exposure:        metadataExposure(cr, cell),
	}
}

// metadataExposure of a cell without its own is that of the Nova. A host name leads to the global
// service alone, which may replace the service of the cell.
func metadataExposure(cr *novav1.Nova, cell novav1.Cell) commonv1.Exposure {
	switch {
	case cell.MetadataExposure != nil:
		return *cell.MetadataExposure
	case cr.Spec.Metadata.Exposure.Hostname != "":
		return commonv1.Exposure{Type: commonv1.ExposureNone}
	}
	return cr.Spec.Metadata.Exposure
}

// listedComputes returns the computes in the NovaCell of a cell, none for a cell that joins.
func listedComputes(cr *novav1.Nova, cell novav1.Cell, in engine.Inputs) []novav1.Compute {
	if child, exists := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell)); exists {
		return child.Spec.Computes
	}
	return nil
}

// computes keep their image until the other services have a new release.
func computes(cr *novav1.Nova, cell novav1.Cell, listed []novav1.Compute) []novav1.Compute {
	var all []novav1.Compute
	for _, compute := range cell.Computes {
		compute = compute.WithDefaults(image(cr), cr.Spec.ServiceDefaults)
		if !hasReached(cr, novav1.UpgradeComputes) {
			compute.ContainerImage = runningImage(cr, listed, compute)
		}
		all = append(all, compute)
	}
	return all
}

// runningImage is the image of a compute before the computes of an upgrade: that in the NovaCell, or the
// former image for one that has joined or rejoined the list.
func runningImage(cr *novav1.Nova, listed []novav1.Compute, compute novav1.Compute) string {
	for _, running := range listed {
		if running.Name == compute.Name {
			return running.ContainerImage
		}
	}
	isNew := compute.ContainerImage == image(cr) || compute.ContainerImage == superconductorImage(cr)
	if isNew && cr.Status.Upgrade.FromImage != "" {
		return cr.Status.Upgrade.FromImage
	}
	return compute.ContainerImage
}

// cellTriggers restarts the conductors of the cells at the end of an upgrade.
func cellTriggers(cr *novav1.Nova, in engine.Inputs) map[string]string {
	if release := restartTriggers(cr, in)[releaseTrigger]; release != "" {
		return map[string]string{releaseTrigger: release}
	}
	return nil
}

// cellDatabase returns the cell's own server or Secret, or a database on the Nova's server.
func cellDatabase(cr *novav1.Nova, cell novav1.Cell) novav1.NovaCellDatabase {
	connection := registrationv1.Connection{Server: cr.Spec.Database.Server, AdminSecretRef: cr.Spec.Database.AdminSecretRef}
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
		row := novav1.CellStatus{Name: string(cell.Name), Ready: metav1.ConditionUnknown, Mapped: metav1.ConditionUnknown}
		if child, ok := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell)); ok {
			describeCell(&row, child)
		}
		table = append(table, row)
	}
	for _, child := range unlisted(cr, in) {
		row := novav1.CellStatus{Name: string(child.Spec.CellName), Ready: metav1.ConditionUnknown}
		describeCell(&row, child)
		table = append(table, row)
	}
	cr.Status.Cells = table
}

// countCells does not count the cells that are being removed.
func countCells(cr *novav1.Nova, _ engine.Inputs) {
	cr.Status.ReadyCells, cr.Status.DesiredCells = 0, int32(len(cr.Spec.Cells))
	for _, row := range cr.Status.Cells {
		if lists(cr, row.Name) && row.Ready == metav1.ConditionTrue {
			cr.Status.ReadyCells++
		}
	}
}

func lists(cr *novav1.Nova, name string) bool {
	return slices.ContainsFunc(cr.Spec.Cells, func(cell novav1.Cell) bool { return string(cell.Name) == name })
}

func describeCell(row *novav1.CellStatus, cell *novav1.NovaCell) {
	row.UUID, row.CellContent = cell.Status.UUID, cell.Status.CellContent
	row.Mapped = metav1.ConditionFalse
	if cell.Status.Mapping != nil {
		row.Mapped = metav1.ConditionTrue
	}
	condition := meta.FindStatusCondition(cell.Status.Conditions, commonv1.ConditionReady)
	if condition == nil || cell.Status.ObservedGeneration != cell.Generation {
		return
	}
	row.Ready = condition.Status
	if condition.Status != metav1.ConditionTrue {
		row.Reason, row.Message = condition.Reason, condition.Message
	}
}
