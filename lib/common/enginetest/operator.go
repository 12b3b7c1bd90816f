package enginetest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/multus"
	"asterism.dev/lib/common/operator"
)

// Scheme returns a scheme with the built-in kinds, Route, HTTPRoute,
// NetworkAttachmentDefinition and the added kinds.
func Scheme(t testing.TB, addToScheme ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, routev1.Install, gatewayv1.Install, multus.AddToScheme}, addToScheme...) {
		if err := add(scheme); err != nil {
			t.Fatalf("building the scheme: %v", err)
		}
	}
	return scheme
}

// schemes has the scheme of each service. To build one takes longer than a pass over a fixture.
var schemes sync.Map

// scheme returns the scheme of the service, which must not be changed.
func (s Subject[T]) scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	var kinds []uintptr
	for _, add := range s.AddToScheme {
		kinds = append(kinds, reflect.ValueOf(add).Pointer())
	}
	key := fmt.Sprint(s.Service.Name, kinds)
	if known, ok := schemes.Load(key); ok {
		return known.(*runtime.Scheme) //nolint:forcetypeassert // stored below
	}
	known, _ := schemes.LoadOrStore(key, Scheme(t, s.AddToScheme...))
	return known.(*runtime.Scheme) //nolint:forcetypeassert // see above
}

// Client returns a client without a cache for the API server in KUBECONFIG.
func Client(t testing.TB, addToScheme ...func(*runtime.Scheme) error) client.Client {
	t.Helper()
	c, err := client.New(Config(t), client.Options{Scheme: Scheme(t, addToScheme...)})
	if err != nil {
		t.Fatalf("connecting to the API server: %v; %s", err, startServer)
	}
	return c
}

// Runnable is a service of an operator, for example an engine.Service.
type Runnable interface {
	SetupWithManager(ctrl.Manager) error
}

// Operator is an operator that runs in the test's process.
type Operator struct {
	// Requests are the requests that the operator has sent.
	Requests *Requests
	stop     func()
}

// Stop ends the operator and returns when its last worker has ended.
func (o *Operator) Stop() { o.stop() }

// Option changes how RunWith starts an operator.
type Option func(*rest.Config, *ctrl.Options)

// Run starts the services as one operator that watches one namespace. The operator ends with
// the test, or by Stop; a second Run restarts it.
func Run(t testing.TB, namespace string, scheme *runtime.Scheme, services ...Runnable) *Operator {
	t.Helper()
	return RunWith(t, namespace, scheme, nil, services...)
}

// RunWith is Run with options, for example an identity with fewer rights.
func RunWith(t testing.TB, namespace string, scheme *runtime.Scheme, options []Option, services ...Runnable) *Operator {
	t.Helper()
	requests := &Requests{}
	cfg := Config(t)
	cfg.Wrap(requests.record)
	opts := ctrl.Options{
		Scheme:     scheme,
		Logger:     operatorLog(t),
		NewCache:   engine.NewCache,
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: operator.Trim, ByObject: operator.CachedByLabel()},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	operator.Confine(&opts.Cache, services...)
	for _, option := range options {
		option(cfg, &opts)
	}
	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatalf("creating the manager: %v", err)
	}
	for _, service := range services {
		if err := service.SetupWithManager(mgr); err != nil {
			t.Fatalf("setting up %T: %v", service, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	started := &Operator{Requests: requests, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})}
	t.Cleanup(started.Stop)
	return started
}
