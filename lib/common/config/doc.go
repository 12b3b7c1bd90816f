// Package config creates the configuration of an oslo.config service: it parses
// connection Secrets, renders them, checks an administrator's snippet and contains
// the scripts that merge the parts in a pod.
//
//	connection Secrets          ConfigMap …-config-data-<hash>      ConfigMap …-scripts-<hash>
//	(user password hostname …)  10-defaults.conf  90-custom.conf    merge-config options.json
//	        │                   policy.yaml …                       start-service probe
//	        │ ParseDatabase …          │                                   │
//	        ▼ Connections              │ CheckSnippet, before rollout      │
//	Secret …-connections-<hash>        │                                   │
//	50-connections.conf, *-ca.crt      │                                   │
//	        │                          │                                   │
//	        └────────────┬─────────────┘                                   │
//	                     ▼                                                 │
//	        init container: merge-config --project <project>  ◄────────────┤
//	                     │                                                 │
//	                     ▼  in-memory emptyDir, /var/lib/config-data/merged │
//	        <project>.conf                 a comment                       │
//	        <project>.conf.d/NN-*.conf     the parts, unchanged            │
//	        <project>.conf.effective       for people, secrets masked      │
//	        *-ca.crt, policy.yaml, api-paste.ini                           │
//	                     │                                                 │
//	                     ▼  mounted read-only at /etc/<project>            ▼
//	        main container: start-service <command>, readiness probe: probe PORT…
//
// The services read the parts themselves, as files of one --config-dir (or as
// /etc/<project>/<project>.conf.d, which is oslo.config's default). Therefore
// oslo.config alone interprets the parts: a later file wins, multi-valued options
// accumulate, deprecated names resolve per file. Only the effective view is computed
// here; the tests compare it with the values that the real oslo.config reads.
//
// The package is independent of services: names of projects, sections and default
// databases are arguments.
package config
