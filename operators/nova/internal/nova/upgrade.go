package nova

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

// An upgrade to another release is a sequence of phases in status.upgrade. A phase ends when its
// needs are met, which read what the operators have observed. The status is written at the end of a
// pass, and only the next pass acts on it: an operator that is killed continues where it was. Another
// image of the same release has no phases: order.go has the order of its services.

// releaseTrigger is the restart trigger that a completed rollout of a release sets. The other
// triggers are names of cells, which have no dot.
const releaseTrigger = "nova.release"

// superconductorSeen is the name of a need that tells whether this pass has looked at the superconductor.
const superconductorSeen = "superconductor seen"

// superconductorImage is the image whose release is that of the Nova.
func superconductorImage(cr *novav1.Nova) string { return wantedImage(cr, cr.Spec.Superconductor) }

// readRelease also builds the configuration of nova-manage, and the connection Secret of Keystone:
// later stages need both, and do not wait until Keystone answers.
func readRelease(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	_, account, err := identity(cr).Secret(in)
	if err != nil {
		return nil, err
	}
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	children, err := service.Run(in, nova.ReadRelease(superconductorImage(cr)))
	return append(account, children...), err
}

func releaseOf(cr *novav1.Nova, in engine.Inputs) (nova.Release, bool) {
	service := workload.Service{Instance: manageName(cr)}
	return nova.ParseRelease(in.Result(service.JobName(nova.ReadRelease(superconductorImage(cr)))))
}

func judgeRelease(cr *novav1.Nova, in engine.Inputs) (string, error) {
	release, known := releaseOf(cr, in)
	if !known {
		return "", engine.Stop(workload.ReasonImageIncomplete, "image %s prints no release of Nova: set spec.containerImage to an image with Nova's Python modules and their metadata; the running pods keep their image", superconductorImage(cr))
	}
	return "Nova " + release.Version, nil
}

// admitted is met when the superconductor may get the image of the spec, and with it the others.
func admitted(cr *novav1.Nova) engine.Need {
	image := superconductorImage(cr)
	superconductor := engine.Existing(superconductorNamed(cr))
	switch cr.Status.ContainerImage {
	case image:
		return superconductor.Optional()
	case "": // nothing runs, or an operator without phases has rolled an image out
		return superconductor.Optional().Where(hasImage(image))
	}
	// Without the Optional, a superconductor that somebody deletes would come back with an image
	// that is not checked, or refused.
	return superconductor.Where(hasImage(image))
}

// hasReached tells whether an upgrade has begun a phase. Without an upgrade it is true.
func hasReached(cr *novav1.Nova, phase novav1.UpgradePhase) bool {
	upgrade := cr.Status.Upgrade
	return upgrade == nil || slices.Index(novav1.UpgradePhases, upgrade.Phase) >= slices.Index(novav1.UpgradePhases, phase)
}

// formerImage is the image of scheduler, metadata and API while that of the spec is not admitted, or
// while an upgrade is in a phase before theirs; "" otherwise.
func formerImage(cr *novav1.Nova) string {
	switch {
	case !hasReached(cr, novav1.UpgradeServices):
		return cr.Status.Upgrade.FromImage
	case isInstalled(cr) && cr.Status.ContainerImage != superconductorImage(cr):
		return cr.Status.ContainerImage
	}
	return ""
}

// reached is met when an upgrade has begun a phase, and without a superconductor: a Need must look
// at an object, and only Where takes a check.
func reached(cr *novav1.Nova, phase novav1.UpgradePhase) engine.Need {
	return engine.Existing(superconductorNamed(cr)).Optional().Where(func(client.Object) error {
		if hasReached(cr, phase) {
			return nil
		}
		return engine.Wait("the upgrade is in phase %s, before %s", cr.Status.Upgrade.Phase, phase)
	})
}

// restartedFor returns the value of releaseTrigger: the release for which the services restart at the end
// of an upgrade, so that they make its calls to computes; last are the present triggers.
func restartedFor(cr *novav1.Nova, last map[string]string) string {
	if cr.Status.Upgrade != nil && hasReached(cr, novav1.UpgradeRestart) {
		return cr.Status.Upgrade.To
	}
	return last[releaseTrigger]
}

// dataMigrations is the release whose migrations the cells run, after those of the API database.
func dataMigrations(cr *novav1.Nova, in engine.Inputs) string {
	upgrade := cr.Status.Upgrade
	if upgrade == nil || in.Result(workload.Service{Instance: manageName(cr)}.JobName(nova.MigrateData(upgrade.To))) == "" {
		return ""
	}
	return upgrade.To
}

func upgradeNeeds(cr *novav1.Nova) []engine.Need {
	superconductor := superconductorNamed(cr)
	needs := []engine.Need{engine.Existing(superconductor).Optional().As(superconductorSeen)}
	if cr.Status.ContainerImage != superconductorImage(cr) {
		for _, secret := range checked(cr).Spec.CustomServiceConfigSecretRefs {
			needs = append(needs, engine.Secret(secret.Name))
		}
		needs = append(needs, authorityNeeds(cr)...)
		needs = append(needs, engine.Existing(schedulerNamed(cr)).Optional(), engine.Existing(apiNamed(cr)).Optional(),
			engine.Existing(metadata.Named(metadataName(cr))).Optional())
		for _, cell := range cr.Spec.Cells {
			needs = append(needs, engine.Existing(cellNamed(cr, cell)).Optional())
		}
	}
	if cr.Status.Upgrade == nil {
		return needs
	}
	ends := map[novav1.UpgradePhase][]engine.Need{
		// The check passes over a cell that is down, or fails without its name.
		novav1.UpgradeChecking: ofMappedCells(cr, novav1.ConditionDatabaseReady, anyCell),
		novav1.UpgradeSchemas: {
			engine.Existing(superconductor).Where(hasImage(superconductorImage(cr))),
			engine.Condition(superconductor, conductorv1.ConditionSchemaReady), cellsReadable(cr),
		},
		novav1.UpgradeConductors: append(updated(superconductorNamed(cr), superconductorImage(cr)), conductors(cr)...),
		novav1.UpgradeServices:   servicesUpdated(cr),
		novav1.UpgradeComputes:   append(ofMappedCells(cr, novav1.ConditionComputesReady, hasNoOlderCompute(cr)), keptCells(cr)),
		novav1.UpgradeRestart:    append(restarted(cr), keptCells(cr)),
		novav1.UpgradeMigrations: append(ofMappedCells(cr, novav1.ConditionDataMigrated, migrates(cr)), keptCells(cr)),
	}
	for _, phase := range novav1.UpgradePhases {
		needs = append(needs, engine.AllOf(ends[phase]...).As(string(phase)))
	}
	return needs
}

// authorityNeeds are the needs of a Job that reads the databases of the cells.
func authorityNeeds(cr *novav1.Nova) (needs []engine.Need) {
	for _, cell := range cr.Status.Cells { // also those that are being removed
		for _, purpose := range []string{"-database-ca", "-messagebus-ca"} {
			needs = append(needs, engine.ConfigMap(cr.Name+"-"+cell.Name+purpose).Optional())
		}
	}
	return needs
}

// servicesUpdated are the needs that scheduler, metadata and API have their image and are ready,
// and so have the services of each cell.
func servicesUpdated(cr *novav1.Nova) []engine.Need {
	needs := updated(schedulerNamed(cr), wantedImage(cr, cr.Spec.Scheduler))
	if cr.Spec.Metadata.Mode != novav1.MetadataPerCell {
		needs = append(needs, updated(metadata.Named(metadataName(cr)), wantedImage(cr, cr.Spec.Metadata.ServiceTemplate))...)
	}
	needs = append(needs, updated(apiNamed(cr), wantedImage(cr, cr.Spec.API.ServiceTemplate))...)
	needs = append(needs, ofMappedCells(cr, novav1.ConditionMetadataReady, anyCell)...)
	return append(needs, ofMappedCells(cr, novav1.ConditionConsoleReady, anyCell)...)
}

func anyCell(client.Object) error { return nil }

// ofMappedCells are the needs that every mapped cell has a condition and meets a check. The condition
// is the first: its message has the cause in this cluster, for which the check may ask for something else.
func ofMappedCells(cr *novav1.Nova, condition string, check func(client.Object) error) []engine.Need {
	var needs []engine.Need
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(cellNamed(cr, cell)).Optional().Where(func(obj client.Object) error {
			cell, ok := obj.(*novav1.NovaCell)
			if !ok || cell.Status.Mapping == nil {
				return nil
			}
			if err := hasCondition(cell, condition); err != nil {
				return err
			}
			return check(cell)
		}))
	}
	return needs
}

func hasCondition(cell *novav1.NovaCell, condition string) error {
	known := meta.FindStatusCondition(cell.Status.Conditions, condition)
	switch {
	case known == nil || cell.Status.ObservedGeneration != cell.Generation || known.ObservedGeneration != cell.Generation:
		return engine.Wait("NovaCell %s does not report %s of its newest generation yet", cell.Name, condition)
	case known.Status != metav1.ConditionTrue:
		return engine.Wait("NovaCell %s: %s is %s: %s", cell.Name, condition, known.Reason, known.Message)
	}
	return nil
}

// hasNoOlderCompute counts the computes by their rows: also those outside this cluster, which
// somebody else upgrades.
func hasNoOlderCompute(cr *novav1.Nova) func(client.Object) error {
	return func(obj client.Object) error {
		cell, ok := obj.(*novav1.NovaCell)
		if !ok {
			return nil
		}
		if cell.Status.Hosts == nil {
			return engine.Wait("the computes of NovaCell %s are not counted yet", cell.Name)
		}
		older, all := olderComputes(cell, cr.Status.Upgrade.ServiceVersion)
		if older > 0 {
			return engine.Wait("%d of %d compute services of NovaCell %s have an older release: upgrade the compute hosts outside this cluster, and delete the compute services of hosts that no longer exist", older, all, cell.Name)
		}
		return nil
	}
}

func olderComputes(cell *novav1.NovaCell, version int32) (older, all int32) {
	for _, computes := range cell.Status.ComputeVersions {
		all += computes.Count
		if computes.Version < version {
			older += computes.Count
		}
	}
	return older, all
}

// restarted are the needs that every service has restarted after the last compute was upgraded: with
// [upgrade_levels] compute = auto, a process looks for the oldest compute once, and keeps to its calls.
func restarted(cr *novav1.Nova) []engine.Need {
	services := []engine.Object{superconductorNamed(cr), schedulerNamed(cr), apiNamed(cr)}
	if cr.Spec.Metadata.Mode != novav1.MetadataPerCell {
		services = append(services, metadata.Named(metadataName(cr)))
	}
	var needs []engine.Need
	for _, service := range services {
		needs = append(needs, engine.Existing(service).Where(restarts(cr)), engine.Condition(service, commonv1.ConditionReady))
	}
	return append(needs, ofMappedCells(cr, novav1.ConditionConductorReady, restarts(cr))...)
}

func restarts(cr *novav1.Nova) func(client.Object) error {
	return func(obj client.Object) error {
		if specOf(obj).RestartTriggers[releaseTrigger] != cr.Status.Upgrade.To {
			return engine.Wait("%s is not restarted yet", obj.GetName())
		}
		return nil
	}
}

func migrates(cr *novav1.Nova) func(client.Object) error {
	return func(obj client.Object) error {
		if cell, ok := obj.(*novav1.NovaCell); ok && cell.Spec.DataMigrations != cr.Status.Upgrade.To {
			return engine.Wait("the online data migrations of NovaCell %s begin after those of the API database", cell.Name)
		}
		return nil
	}
}

// progress is what a pass finds of an upgrade.
type progress struct {
	known   bool   // the release in the image of the spec
	release string // that runs
	image   string // that is admitted
	upgrade *novav1.UpgradeStatus
	refused string // why the image is not admitted
	paused  novav1.UpgradePhase
}

// progressOf derives the progress from the status, the release in the image, and the needs of the
// phases. It has no effect, and is called by each function of the stage.
func progressOf(cr *novav1.Nova, in engine.Inputs) progress {
	p := progress{release: cr.Status.Release, image: cr.Status.ContainerImage, upgrade: cr.Status.Upgrade.DeepCopy()}
	image := superconductorImage(cr)
	to, known := releaseOf(cr, in)
	p.known = known
	begun, base := p.databases()
	if !begun && !isInstalled(cr) || p.image == "" && runs(in, cr, image) {
		p.image = image // nothing has to be checked, or an operator without phases has rolled it out
	}
	if p.image != image && known && base == to.Major {
		p.image = image // a rebuild
	}
	switch {
	case p.image == image && !begun:
		p.upgrade = nil
		if known {
			p.release = to.Version
		}
	case !known:
		return p
	case p.image != image && begun:
		p.refused = fmt.Sprintf("the upgrade to %s has changed databases: set spec.containerImage to an image of this release, and change to %s when it is done", p.upgrade.To, to.Version)
		return p
	case p.image != image:
		p.check(cr, in, base, to)
	}
	p.advance(cr, in)
	return p
}

// databases tells whether an upgrade has begun to change the databases, and their release.
func (p *progress) databases() (begun bool, major int) {
	if p.upgrade != nil && p.upgrade.Phase != novav1.UpgradeChecking {
		return true, nova.MajorOf(p.upgrade.To)
	}
	return false, nova.MajorOf(p.release)
}

func runs(in engine.Inputs, cr *novav1.Nova, image string) bool {
	running, exists := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr))
	return exists && imageOf(running) == image
}

// isInstalled tells whether databases have content: a cell is or was mapped. Before, a wrong image is
// corrected by any other.
func isInstalled(cr *novav1.Nova) bool {
	return slices.ContainsFunc(cr.Status.Cells, func(cell novav1.CellStatus) bool { return cell.UUID != "" })
}

// check begins the upgrade to a release, or refuses it.
func (p *progress) check(cr *novav1.Nova, in engine.Inputs, base int, to nova.Release) {
	if p.upgrade == nil || p.upgrade.To != to.Version {
		p.upgrade = &novav1.UpgradeStatus{Phase: novav1.UpgradeChecking, From: p.release, To: to.Version, ServiceVersion: to.Service, StartedAt: metav1.Now()}
	}
	p.upgrade.FromImage = p.image
	const keeps = "; the running pods keep their image, and setting spec.containerImage back ends the upgrade"
	switch {
	case to.Major < base:
		p.refused = fmt.Sprintf("Nova %s runs, and its databases cannot go back to %s: restore a backup%s", p.release, to.Version, keeps)
	case base != 0 && to.Major > nova.LatestFrom(base):
		p.refused = fmt.Sprintf("Nova supports no upgrade from %s to %s: upgrade to release %d first%s", p.release, to.Version, nova.LatestFrom(base), keeps)
	case len(behind(cr, in)) > 0:
		p.refused = fmt.Sprintf("%s would stay at Nova %s: change or remove their containerImage too%s", strings.Join(behind(cr, in), " and "), p.release, keeps)
	case in.Result(checkName(cr)) != "":
		p.enter(cr, novav1.UpgradeSchemas)
	}
	if p.upgrade.Phase != novav1.UpgradeChecking {
		p.image = superconductorImage(cr)
	}
}

// behind are the services with an image of their own that does not change with the
// superconductor's.
func behind(cr *novav1.Nova, in engine.Inputs) (names []string) {
	add := func(child client.Object, exists bool, image string) {
		if exists && image != superconductorImage(cr) && imageOf(child) == image {
			names = append(names, fmt.Sprintf("%s with image %s", child.GetName(), image))
		}
	}
	ofCell := func(child *novav1.NovaCell, service, runs, image string) {
		if image != superconductorImage(cr) && runs == image {
			names = append(names, fmt.Sprintf("%s of %s with image %s", service, child.Name, image))
		}
	}
	scheduler, exists := engine.Get[*schedulerv1.NovaScheduler](in, schedulerName(cr))
	add(scheduler, exists, wantedImage(cr, cr.Spec.Scheduler))
	if cr.Spec.Metadata.Mode != novav1.MetadataPerCell {
		service, exists := engine.Get[*metadatav1.NovaMetadata](in, metadataName(cr))
		add(service, exists, wantedImage(cr, cr.Spec.Metadata.ServiceTemplate))
	}
	api, exists := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	add(api, exists, wantedImage(cr, cr.Spec.API.ServiceTemplate))
	for _, cell := range cr.Spec.Cells {
		child, exists := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		add(child, exists, wantedImage(cr, cell.Conductor))
		if exists && child.Spec.Metadata != nil {
			ofCell(child, "the metadata service", child.Spec.Metadata.ContainerImage, wantedImage(cr, cr.Spec.Metadata.ServiceTemplate))
		}
		if exists && child.Spec.NoVNCProxy != nil && cell.NoVNCProxy != nil {
			ofCell(child, "the console proxy", child.Spec.NoVNCProxy.ContainerImage, wantedImage(cr, cell.NoVNCProxy.ServiceTemplate))
		}
	}
	return names
}

// enter begins a phase, unless the policy pauses before it.
func (p *progress) enter(cr *novav1.Nova, phase novav1.UpgradePhase) {
	if cr.Spec.UpgradePolicy.PauseBefore == phase {
		p.paused = phase
		return
	}
	p.upgrade.Phase = phase
}

// advance ends each phase whose needs are met.
func (p *progress) advance(cr *novav1.Nova, in engine.Inputs) {
	for p.upgrade != nil && p.paused == "" && p.upgrade.Phase != novav1.UpgradeChecking && in.Met(string(p.upgrade.Phase)) {
		next := slices.Index(novav1.UpgradePhases, p.upgrade.Phase) + 1
		if next == len(novav1.UpgradePhases) {
			p.release, p.upgrade = p.upgrade.To, nil
			return
		}
		p.enter(cr, novav1.UpgradePhases[next])
	}
}

func checkName(cr *novav1.Nova) string {
	return checked(cr).JobName(nova.CheckUpgrade("", nil))
}

// checked is the superconductor as nova-status sees it, except for its connections.
func checked(cr *novav1.Nova) workload.Service {
	return workload.Service{
		Name:              "nova",
		Instance:          manageName(cr) + "-upgrade",
		Project:           nova.Project(),
		Spec:              cr.Spec.Superconductor.Spec(image(cr), cr.Spec.ServiceDefaults),
		SharedConnections: nova.Conductor.Connections(cr.Spec.SharedConnections),
	}
}

// upgradeJobs builds the check of a new release, with the configuration of the superconductor, and
// the online data migrations of the API database and cell0.
func upgradeJobs(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	p, upgrade := progressOf(cr, in), cr.Status.Upgrade
	service, err := manage(cr, in)
	switch {
	case err != nil || upgrade == nil || p.refused != "":
		return nil, err
	case upgrade.Phase == novav1.UpgradeChecking && p.known && p.upgrade != nil && p.upgrade.To == upgrade.To && in.Met(string(novav1.UpgradeChecking)):
		check := checked(cr)
		check.Databases, check.MessageBus, check.Spec.CAFileRefs = service.Databases, service.MessageBus, caFiles(cr, in)
		if check.Identity.Secret, _, err = identity(cr).Secret(in); err != nil {
			return nil, err
		}
		// A pause before anything changes may take weeks, after which the check runs again.
		pauses := fmt.Sprint(cr.Spec.UpgradePolicy.PauseBefore == novav1.UpgradeSchemas)
		return check.Run(in, nova.CheckUpgrade(upgrade.To, cr.Spec.UpgradePolicy.SkipCheck, superconductorImage(cr), pauses))
	case upgrade.Phase == novav1.UpgradeMigrations && p.image == superconductorImage(cr):
		return service.Job(in, nova.MigrateData(upgrade.To))
	}
	return nil, nil
}

var upgradeReasons = map[novav1.UpgradePhase]string{
	novav1.UpgradeChecking:   engine.ReasonProgressing,
	novav1.UpgradeSchemas:    novav1.ReasonUpgradingSchemas,
	novav1.UpgradeConductors: novav1.ReasonUpgradingConductors,
	novav1.UpgradeServices:   novav1.ReasonUpgradingServices,
	novav1.UpgradeComputes:   novav1.ReasonUpgradingComputes,
	novav1.UpgradeRestart:    novav1.ReasonUpgradingRestart,
	novav1.UpgradeMigrations: novav1.ReasonUpgradingMigrations,
}

func judgeUpgrade(cr *novav1.Nova, in engine.Inputs) (string, error) {
	p := progressOf(cr, in)
	switch {
	case p.refused != "":
		return "", engine.Stop(novav1.ReasonUpgradeRefused, "%s", p.refused)
	case p.image != superconductorImage(cr) && !p.known:
		return "", engine.Wait("the release in image %s is not known yet", superconductorImage(cr))
	case p.upgrade == nil:
		return "", nil
	case p.paused != "":
		return "", engine.WaitAs(novav1.ReasonUpgradePaused, "the upgrade from %s to %s is paused before phase %s: remove spec.upgradePolicy.pauseBefore", former(p.upgrade), p.upgrade.To, p.paused)
	}
	return "", engine.ProgressAs(upgradeReasons[p.upgrade.Phase], "upgrade from %s to %s, phase %s: %s", former(p.upgrade), p.upgrade.To, p.upgrade.Phase, cmp.Or(in.Unmet(string(p.upgrade.Phase)), "begins"))
}

func former(upgrade *novav1.UpgradeStatus) string { return cmp.Or(upgrade.From, "an unknown release") }

// report is the Report of the Nova.
func report(cr *novav1.Nova, in engine.Inputs) {
	if in.KnowsChildren() && cr.DeletionTimestamp == nil { // also if no stage may change the cells
		reportCells(cr, in)
	}
	countCells(cr, in)
	reportServices(cr, in)
	if !in.Met(superconductorSeen) {
		return
	}
	p := progressOf(cr, in)
	cr.Status.Release, cr.Status.ContainerImage, cr.Status.Upgrade = p.release, p.image, p.upgrade
	if p.upgrade == nil {
		return
	}
	if condition := meta.FindStatusCondition(cr.Status.Conditions, novav1.ConditionUpgraded); condition != nil {
		p.upgrade.Message = condition.Message
	}
	p.upgrade.Cells = nil
	for _, cell := range cr.Spec.Cells {
		child, _ := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell))
		p.upgrade.Cells = append(p.upgrade.Cells, novav1.CellUpgrade{Name: string(cell.Name), Phase: cellPhase(cr, child)})
	}
}

// cellPhase is the first phase that a cell has not completed.
func cellPhase(cr *novav1.Nova, child *novav1.NovaCell) string {
	upgrade := cr.Status.Upgrade
	if child == nil || !hasReached(cr, novav1.UpgradeSchemas) {
		return string(novav1.UpgradeChecking)
	}
	isTrue := func(condition string) bool { return hasCondition(child, condition) == nil }
	older, _ := olderComputes(child, upgrade.ServiceVersion)
	switch {
	case imageOf(child) != superconductorImage(cr) || !isTrue(novav1.ConditionSchemaReady):
		return string(novav1.UpgradeSchemas)
	case !hasReached(cr, novav1.UpgradeRestart) && !isTrue(novav1.ConditionConductorReady):
		return string(novav1.UpgradeConductors)
	case older > 0 || !isTrue(novav1.ConditionComputesReady):
		return string(novav1.UpgradeComputes)
	case restarts(cr)(child) != nil || !isTrue(novav1.ConditionConductorReady):
		return string(novav1.UpgradeRestart)
	case migrates(cr)(child) != nil || !isTrue(novav1.ConditionDataMigrated):
		return string(novav1.UpgradeMigrations)
	}
	return "Complete"
}
