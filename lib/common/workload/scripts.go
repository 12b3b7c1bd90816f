package workload

import (
	_ "embed"
	"fmt"
	"maps"
	"path"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/kolla"
)

const (
	drainName        = "drain"
	probeTLSName     = "probe-tls"
	startWSGIName    = "start-wsgi"
	startWSGITLSName = "start-wsgi-tls"
)

var (
	//go:embed scripts/drain
	drain string
	//go:embed scripts/probe-tls
	probeTLS string
	//go:embed scripts/start-wsgi
	startWSGI string
	//go:embed scripts/start-wsgi-tls
	startWSGITLS string
)

// Start returns the command of a service that is a program.
func Start(command ...string) []string {
	return append([]string{path.Join(config.ScriptsDir, config.StartService)}, command...)
}

// scripts returns the scripts of the pods.
func (s Service) scripts() (map[string]string, error) {
	scripts := config.Scripts(s.options()...)
	scripts[drainName], scripts[startWSGIName] = drain, startWSGI
	if s.Port != nil && s.Port.TLS() {
		scripts[probeTLSName] = probeTLS
	}
	if s.servesTLS() {
		scripts[startWSGITLSName] = startWSGITLS
	}
	maps.Copy(scripts, s.Scripts)
	if !s.RunOnHost {
		return scripts, nil
	}
	forHost, err := kolla.Scripts(s.Command)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	maps.Copy(scripts, forHost)
	return scripts, nil
}
