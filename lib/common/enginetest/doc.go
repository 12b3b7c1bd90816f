// Package enginetest is what the suites of operators are made of: a Subject is
// one kind, whose fixtures are rendered (Golden), checked (Conform) and tried on
// a real API server (Smoke); Run starts an operator in the test's process, with
// every request that it sends on record, and Kubelet plays the nodes.
package enginetest
