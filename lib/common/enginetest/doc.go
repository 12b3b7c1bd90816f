// Package enginetest has the tools for tests of operators. A Subject is one kind, whose
// fixtures are rendered (Golden), checked (Conform) and sent to a real API server (Smoke).
// Run starts an operator in the test's process and records its requests. Kubelet simulates
// the nodes.
package enginetest
