package workload

import (
	_ "embed"
	"path"

	"asterism.dev/lib/common/config"
)

const startWSGIName = "start-wsgi"

//go:embed scripts/start-wsgi
var startWSGI string

// Serve is the command of a WSGI service: script is the file that older
// releases install, module the one that newer ones have.
func Serve(port, script, module string) []string {
	return []string{path.Join(config.ScriptsDir, startWSGIName), port, script, module}
}

// Start is the command of a service that is a program of its own.
func Start(command ...string) []string {
	return append([]string{path.Join(config.ScriptsDir, config.StartService)}, command...)
}
