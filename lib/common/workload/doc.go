// Package workload builds the Kubernetes objects of an OpenStack service: its
// configuration, pods, Jobs, Services and disruption budgets, as typed apply
// configurations.
//
// The operator of a service describes one instance with a Service and uses its builders in
// stages. The package is independent of services.
package workload
