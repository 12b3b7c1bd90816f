// Package workload builds what an OpenStack service runs as: its configuration,
// pods, Jobs, Services and disruption budgets, as typed apply configurations.
//
// A service operator describes one instance with a Service and lists its
// builders as stages; nothing here knows a service by name.
package workload
