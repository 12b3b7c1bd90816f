package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs an operator as Main does, without flags, probes, metrics and leader election.
func Run(ctx context.Context, config *rest.Config, addToScheme func(*runtime.Scheme) error, controllers ...Controller) error {
	return run(ctx, config, addToScheme, &ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}, controllers)
}

// Elected returns a function that runs an operator as Main does, without flags, probes and
// metrics.
func Elected(lease string, config *rest.Config) (func(context.Context, ...Controller) error, error) {
	options := &ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: lease}
	return func(ctx context.Context, controllers ...Controller) error {
		return run(ctx, config, func(*runtime.Scheme) error { return nil }, options, controllers)
	}, elect(config, options)
}

// InUse tells whether a namespace has an object of a controller's kind.
func InUse(ctx context.Context, c client.Client, namespace string, controllers ...Controller) (bool, error) {
	return (&use{client: c, kinds: controllers, namespace: namespace}).inUse(ctx)
}

// CheckRemoval is what an operator with --check-removal does.
var CheckRemoval = checkRemoval
