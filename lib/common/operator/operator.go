// Package operator runs the controllers of one operator as a process: flags,
// manager, probes, metrics, leader election.
package operator

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	// An operator's image holds no certificates: these are the public authorities.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Controller is what engine.Service is to a manager.
type Controller interface {
	SetupWithManager(mgr ctrl.Manager) error
	// Kind is an empty object of the kind that is reconciled, nil for none.
	Kind() client.Object
}

// Environment variables that an operator reads.
const (
	// watchNamespace lists the namespaces to watch, separated by commas. Empty:
	// all, which needs cluster-wide rights. Unset: those that are handed over.
	watchNamespace = "WATCH_NAMESPACE"
	// podNamespace and podServiceAccount are where the operator runs, and as whom.
	podNamespace      = "POD_NAMESPACE"
	podServiceAccount = "POD_SERVICE_ACCOUNT"
)

// defaultSyncPeriod is a safety net: every change is an event anyway.
const defaultSyncPeriod = 10 * time.Hour

// Main runs an operator until it is told to stop; it ends the process with 1
// and one line that says why if it cannot.
func Main(name string, addToScheme func(*runtime.Scheme) error, controllers ...Controller) {
	options, logging := flags(flag.CommandLine, name)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(logging)))
	config, err := ctrl.GetConfig()
	if err != nil {
		err = fmt.Errorf("finding the cluster: %w", err)
	} else {
		err = run(ctrl.SetupSignalHandler(), config, addToScheme, options, controllers)
	}
	if err != nil {
		ctrl.Log.Error(err, "the operator cannot run", "operator", name)
		os.Exit(1)
	}
}

// flags are the same for every operator.
func flags(set *flag.FlagSet, name string) (*ctrl.Options, *zap.Options) {
	options := &ctrl.Options{
		LeaderElectionID:              name + ".asterism.dev",
		LeaderElectionReleaseOnCancel: true,
		Metrics: metricsserver.Options{
			SecureServing:  true,
			FilterProvider: authorized,
			// HTTP/2 has had too many denials of service for an endpoint that does not need it.
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
		},
	}
	set.StringVar(&options.Metrics.BindAddress, "metrics-bind-address", ":8443", "address that serves metrics over HTTPS to clients with the right to read them; 0 turns it off")
	set.StringVar(&options.Metrics.CertDir, "metrics-cert-path", "", "directory with tls.crt and tls.key for the metrics; empty: self-signed")
	set.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address that serves /healthz and /readyz; 0 turns it off")
	options.Cache.SyncPeriod = set.Duration("sync-period", defaultSyncPeriod, "after how long every object is looked at again without a reason")
	set.BoolVar(&options.LeaderElection, "leader-elect", true, "let only one of several replicas work at a time")
	logging := &zap.Options{}
	logging.BindFlags(set)
	return options, logging
}

// run until the context ends.
func run(ctx context.Context, config *rest.Config, addToScheme func(*runtime.Scheme) error, options *ctrl.Options, controllers []Controller) error {
	scheme, err := newScheme(addToScheme)
	if err != nil {
		return err
	}
	options.Scheme = scheme
	options.Cache.DefaultTransform = Trim
	options.Controller.SkipNameValidation = new(true) // a later manager has the same controllers
	config.DisableCompression = true                  // each event of a watch is small, and near
	if list, set := os.LookupEnv(watchNamespace); set {
		if options.Cache.DefaultNamespaces, err = watchedNamespaces(list); err != nil {
			return err
		}
		return runManager(ctx, config, *options, controllers)
	}
	given, err := newHandOver(ctx, config, scheme)
	if err != nil {
		return err
	}
	return given.run(ctx, config, *options, controllers)
}

func runManager(ctx context.Context, config *rest.Config, options ctrl.Options, controllers []Controller) error {
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	for _, controller := range controllers {
		if err := controller.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme(addToScheme func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// watchedNamespaces are those of a list that is separated by commas; nil is all.
func watchedNamespaces(list string) (map[string]cache.Config, error) {
	if list == "" {
		return nil, nil
	}
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s is %q, which names no namespace: set it to the empty string to watch all", watchNamespace, list)
	}
	return watch(names...), nil
}

func watch(namespaces ...string) map[string]cache.Config {
	watched := map[string]cache.Config{}
	for _, name := range namespaces {
		watched[name] = cache.Config{}
	}
	return watched
}
