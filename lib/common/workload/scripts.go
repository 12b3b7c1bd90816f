package workload

import (
	_ "embed"
	"path"

	"asterism.dev/lib/common/config"
)

const startWSGIName = "start-wsgi"

//go:embed scripts/start-wsgi
var startWSGI string

// Serve returns the command of a WSGI service: script is the file of older releases, module
// the Python module of newer releases.
func Serve(port, script, module string) []string {
	return []string{path.Join(config.ScriptsDir, startWSGIName), port, script, module}
}

// Start returns the command of a service that is a program.
func Start(command ...string) []string {
	return append([]string{path.Join(config.ScriptsDir, config.StartService)}, command...)
}
