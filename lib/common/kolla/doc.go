// Package kolla lets a container run the storage programs of its node, and starts the
// container by the entry point of kolla's images.
//
// Config writes config.json, the file that the entry point kolla_start reads; its rules are
// those of the program kolla_set_configs (kolla: docker/base/set_configs.py). RunOnHost
// changes a pod: the programs of HostPrograms in its container become the programs of the
// node, by the script run-on-host.
package kolla
