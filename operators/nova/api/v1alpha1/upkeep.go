package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Upkeep has the settings of the daily archive and purge of deleted rows.
//
// +kubebuilder:validation:XValidation:rule="!has(self.purgeAfterDays) || self.purgeAfterDays >= (has(self.archiveAfterDays) ? self.archiveAfterDays : 30)",message="must not have purgeAfterDays below archiveAfterDays: rows are archived before they are purged"
type Upkeep struct {
	// dailyAt is the time of day, in UTC, from which a run begins: HH:MM. The first run begins at
	// once. Default: 03:00.
	// +optional
	// +kubebuilder:default="03:00"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a time of day in UTC, as HH:MM from 00:00 to 23:59"
	DailyAt string `json:"dailyAt,omitempty"`

	// archiveAfterDays is the number of days, 0 to 3650, after which the rows of a deleted instance
	// leave the tables that Nova reads: the API then no longer shows the instance, neither in lists
	// of deleted instances nor in reports of usage. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3650
	ArchiveAfterDays *int32 `json:"archiveAfterDays,omitempty"`

	// purgeAfterDays is the number of days after the deletion, up to 3650 and not below
	// archiveAfterDays, after which archived rows are deleted for good. Default: never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3650
	PurgeAfterDays *int32 `json:"purgeAfterDays,omitempty"`

	// batchSize is the number of rows, 1 to 100000, that one transaction archives at most. Fewer
	// rows hold locks for a shorter time. Default: 1000.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	BatchSize int32 `json:"batchSize,omitempty"`
}

// UpkeepStatus describes the last run that has succeeded.
type UpkeepStatus struct {
	// lastRunAt is the time at which the run began.
	// +optional
	LastRunAt *metav1.Time `json:"lastRunAt,omitempty"`

	// result has the numbers of archived and purged rows, and how long the run took.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Result string `json:"result,omitempty"`
}
