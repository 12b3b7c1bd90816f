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

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	// The public certificate authorities: an operator's image has no certificates.
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

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/multus"
)

// Controller is a controller that a manager runs, for example an engine.Service.
type Controller interface {
	SetupWithManager(mgr ctrl.Manager) error
	// Kind returns an empty object of the reconciled kind, nil for none.
	Kind() client.Object
}

// Environment variables that an operator reads.
const (
	// watchNamespace lists the namespaces to watch, separated by commas. Empty: all
	// namespaces, which needs rights in the whole cluster. Unset: the namespaces that are
	// handed over.
	watchNamespace = "WATCH_NAMESPACE"
	// podNamespace and podServiceAccount name the operator's ServiceAccount, podName its pod.
	podNamespace      = "POD_NAMESPACE"
	podName           = "POD_NAME"
	podServiceAccount = "POD_SERVICE_ACCOUNT"
)

// defaultSyncPeriod is long, because every change is an event.
const defaultSyncPeriod = 10 * time.Hour

// Main runs an operator until it receives a signal. If the operator cannot run, Main logs
// the error and ends the process with status 1.
func Main(name string, addToScheme func(*runtime.Scheme) error, controllers ...Controller) {
	options, logging := flags(flag.CommandLine, name)
	removal := flag.Bool("check-removal", false, "end with status 1 if objects of the operator's kinds exist, and run nothing")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(logging)))
	config, err := ctrl.GetConfig()
	switch ctx := ctrl.SetupSignalHandler(); {
	case err != nil:
		err = fmt.Errorf("finding the cluster: %w", err)
	case *removal:
		if err = checkRemoval(ctx, config, addToScheme, controllers); err != nil {
			fmt.Fprintln(os.Stderr, err) // the command that removes the operator shows these lines
			os.Exit(1)
		}
	default:
		if err = elect(config, options); err == nil {
			err = run(ctx, config, addToScheme, options, controllers)
		}
	}
	if err != nil {
		ctrl.Log.Error(err, "the operator cannot run", "operator", name)
		os.Exit(1)
	}
}

// flags are the same for every operator.
func flags(set *flag.FlagSet, name string) (*ctrl.Options, *zap.Options) {
	options := &ctrl.Options{
		LeaderElectionID: name + ".asterism.dev",
		Metrics: metricsserver.Options{
			SecureServing:  true,
			FilterProvider: authorized,
			// HTTP/2 has had too many denials of service for an endpoint that does not need it.
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
		},
	}
	set.StringVar(&options.Metrics.BindAddress, "metrics-bind-address", ":8443", "address that serves metrics over HTTPS to clients with the right to get /metrics; 0 disables metrics")
	set.StringVar(&options.Metrics.CertDir, "metrics-cert-path", "", "directory with tls.crt and tls.key for the metrics; default: a self-signed certificate")
	set.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address that serves /healthz and /readyz; 0 disables the probes")
	options.Cache.SyncPeriod = set.Duration("sync-period", defaultSyncPeriod, "time after which every object is reconciled again without a change")
	set.BoolVar(&options.LeaderElection, "leader-elect", true, "elect a leader, so that only one replica reconciles at a time")
	logging := &zap.Options{}
	logging.BindFlags(set)
	return options, logging
}

// run runs the controllers until the context ends.
func run(ctx context.Context, config *rest.Config, addToScheme func(*runtime.Scheme) error, options *ctrl.Options, controllers []Controller) error {
	scheme, err := newScheme(addToScheme)
	if err != nil {
		return err
	}
	options.Scheme = scheme
	options.NewCache = engine.NewCache
	options.Cache.DefaultTransform = Trim
	options.Cache.ByObject = CachedByLabel()
	Confine(&options.Cache, controllers...)
	options.Controller.SkipNameValidation = new(true) // a later manager has the same controllers
	config.DisableCompression = true                  // events of a watch are small, and the network is fast
	if list, set := os.LookupEnv(watchNamespace); set {
		if options.Cache.DefaultNamespaces, err = watchedNamespaces(list); err != nil {
			return err
		}
		return runManager(ctx, config, *options, controllers)
	}
	h, err := newHandOver(ctx, config, scheme, options.Cache.SyncPeriod)
	if err != nil {
		return err
	}
	return h.run(ctx, config, *options, controllers)
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
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv2.AddToScheme, multus.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// watchedNamespaces parses a list that is separated by commas; nil means all namespaces.
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
		return nil, fmt.Errorf("environment variable %s is %q, which has no namespace: name the namespaces, or set it to the empty string to watch all", watchNamespace, list)
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
