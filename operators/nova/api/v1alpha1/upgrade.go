package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradePhase is a step of the upgrade to another release of Nova.
// +kubebuilder:validation:Enum=Checking;Schemas;Conductors;Services;Computes;Restart;Migrations
type UpgradePhase string

const (
	// UpgradeChecking runs nova-status upgrade check of the new image. Nothing is changed.
	UpgradeChecking UpgradePhase = "Checking"
	// UpgradeSchemas synchronizes the schemas of every database. No pod of a service changes.
	UpgradeSchemas UpgradePhase = "Schemas"
	// UpgradeConductors rolls out the superconductor, then the conductors of the cells with their
	// metadata services and console proxies.
	UpgradeConductors UpgradePhase = "Conductors"
	// UpgradeServices rolls out scheduler and metadata, then the API.
	UpgradeServices UpgradePhase = "Services"
	// UpgradeComputes rolls out the computes in this cluster, and waits for all others.
	UpgradeComputes UpgradePhase = "Computes"
	// UpgradeRestart restarts the services once, so that they use the calls of the new release.
	UpgradeRestart UpgradePhase = "Restart"
	// UpgradeMigrations runs the online data migrations of every database.
	UpgradeMigrations UpgradePhase = "Migrations"
)

// UpgradePhases are the phases in order.
var UpgradePhases = []UpgradePhase{UpgradeChecking, UpgradeSchemas, UpgradeConductors, UpgradeServices, UpgradeComputes, UpgradeRestart, UpgradeMigrations}

// Reasons of Upgraded: one for each phase after Checking, and two for an upgrade that waits for
// an administrator.
const (
	ReasonUpgradingSchemas    = "UpgradingSchemas"
	ReasonUpgradingConductors = "UpgradingConductors"
	ReasonUpgradingServices   = "UpgradingServices"
	ReasonUpgradingComputes   = "UpgradingComputes"
	ReasonUpgradingRestart    = "UpgradingRestart"
	ReasonUpgradingMigrations = "UpgradingMigrations"
	ReasonUpgradePaused       = "UpgradePaused"
	ReasonUpgradeRefused      = "UpgradeRefused"
)

// UpgradePolicy has the settings of an upgrade.
type UpgradePolicy struct {
	// skipCheck names checks of nova-status upgrade check whose warnings you accept, for example
	// hw_machine_type unset. The message of condition Upgraded has the names. A failure cannot be
	// skipped. Default: every warning stops the upgrade before anything changes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	SkipCheck []string `json:"skipCheck,omitempty"`

	// pauseBefore is the phase before which the upgrade stops, until you change the field:
	// Schemas, Conductors, Services, Computes, Restart or Migrations. Default: no stop.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 'Checking'",message="must not be Checking, which changes nothing: pause before Schemas"
	PauseBefore UpgradePhase `json:"pauseBefore,omitempty"`
}

// UpgradeStatus is the state of an upgrade that runs.
type UpgradeStatus struct {
	// phase of the upgrade: Checking, Schemas, Conductors, Services, Computes, Restart or
	// Migrations.
	// +required
	Phase UpgradePhase `json:"phase"`

	// from is the former release. It is absent if it was not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from,omitempty"`

	// fromImage is the former image of the superconductor. Scheduler, metadata and API that somebody
	// deletes before the phase Services come back with it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	FromImage string `json:"fromImage,omitempty"`

	// to is the new release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	To string `json:"to"`

	// serviceVersion is the version that services of the new release have in the databases of
	// cells. A compute with a smaller version is not upgraded yet.
	// +required
	// +kubebuilder:validation:Minimum=1
	ServiceVersion int32 `json:"serviceVersion"`

	// startedAt is the time at which the new release was found in the image.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// message tells what the upgrade waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// cells has the phase of each cell in the spec, and Complete for a cell without further work.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Cells []CellUpgrade `json:"cells,omitempty"`
}

// CellUpgrade is the state of the upgrade of one cell.
type CellUpgrade struct {
	// name of the cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name"`

	// phase that the cell has not completed: Schemas, Conductors, Computes, Restart or Migrations,
	// or Complete.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Phase string `json:"phase"`
}
