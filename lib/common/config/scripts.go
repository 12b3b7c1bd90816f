package config

import (
	_ "embed"
	"slices"
)

// Directories and files in a pod. The init container mounts all directories; the main
// container mounts ScriptsDir, and the volume of MergedDir read-only at /etc/<project>.
const (
	ScriptsDir     = "/usr/local/bin/container-scripts" // ConfigMap with Scripts, defaultMode 0555
	PartsDir       = "/var/lib/config-data/parts"       // ConfigMap with DefaultsPart and CustomPart
	ConnectionsDir = "/var/lib/config-data/connections" // Secret, see Connections
	ExtraDir       = "/var/lib/config-data/extra"       // optional: files that are copied as they are
	MergedDir      = "/var/lib/config-data/merged"      // in-memory emptyDir that merge-config fills
	DefaultsPart   = "10-defaults.conf"
	CustomPart     = "90-custom.conf"
)

// Names of the scripts in ScriptsDir; each script documents its arguments.
const (
	MergeConfig  = "merge-config"
	StartService = "start-service"
	Probe        = "probe"
	OptionsFile  = "options.txt" // the table of options that merge-config reads
)

var (
	//go:embed scripts/merge-config
	mergeConfig string
	//go:embed scripts/start-service
	startService string
	//go:embed scripts/probe
	probe string
)

// Scripts returns the data of the ConfigMap with the scripts. Its table of options
// consists of OsloOptions and known, the options of the service.
func Scripts(known ...Option) map[string]string {
	return map[string]string{
		MergeConfig:  mergeConfig,
		StartService: startService,
		Probe:        probe,
		OptionsFile:  slices.Concat(OsloOptions(), known).String(),
	}
}
