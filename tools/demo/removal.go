package main

import (
	"context"

	"asterism.dev/tools/internal/progress"
)

// removal removes the demo from an existing cluster. The operators and CRDs stay, as
// other namespaces may use them.
func (d *demo) removal() []step {
	const stepPlane = "Removing ControlPlane " + controlPlane
	remove := func(log string, args ...string) func(context.Context, *progress.Line) error {
		return func(ctx context.Context, line *progress.Line) error {
			args := append([]string{"delete", "--ignore-not-found", "--timeout=" + d.timeout.String()}, args...)
			return d.run(ctx, line, d.kubectl(log, args...))
		}
	}
	return []step{
		{stepConnection, nil, d.connect},
		{stepPlane, []string{stepConnection}, remove("delete-controlplane", "controlplanes."+group, controlPlane, "--namespace="+namespace)},
		{"Removing namespace " + namespace, []string{stepPlane}, remove("delete-namespace", "namespace", namespace)},
	}
}
