// Package nova has what the operators of Nova's services share: the options of the project, its
// databases, and the connections to the OpenStack services that it calls.
package nova

import (
	_ "embed"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/workload"
)

// Name of the project, and of the service in the catalog.
const Name = "nova"

// longRPCSeconds is the time of the longest call to a compute (nova: long_rpc_timeout), for
// which the API waits while it attaches a volume.
const longRPCSeconds = 1800

// LongestSeconds is more than a request with this time-out takes.
func LongestSeconds(timeout int64) int64 { return longRPCSeconds + timeout }

//go:embed options.txt
var options string

// accounts are the sections with an account for another service.
var accounts = []string{"barbican_service_user", "cinder", "ironic", "neutron", "oslo_limit", "placement"}

// Project describes Nova to the builders of lib/common.
func Project() workload.Project {
	known, _ := config.ParseOptions(options) // a test finds its errors
	return workload.Project{Name: Name, Options: append(known, config.AuthOptions(accounts...)...)}
}
