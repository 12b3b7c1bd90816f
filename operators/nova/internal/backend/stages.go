package backend

import (
	"context"
	"time"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
)

// registerEvery is the time after which an account is checked and registered again,
// because a server sends no notification when an account is changed or lost. The engine waits up
// to a tenth longer, and the pages promise ten minutes.
const registerEvery = 9 * time.Minute

// Register adds to a stage the registration of backends, and their connection Secrets.
func Register[T engine.Object](stage engine.Stage[T], backends ...func(T) Backend) engine.Stage[T] {
	stage = RegisterOnly(stage, backends...)
	stage.Build = build(backends, func(b Backend, in engine.Inputs) ([]engine.Child, error) {
		_, secret, err := b.Secret(in)
		return secret, err
	})
	return stage
}

// RegisterOnly is Register without the connection Secrets. The needs of the backends
// precede the needs of the stage.
func RegisterOnly[T engine.Object](stage engine.Stage[T], backends ...func(T) Backend) engine.Stage[T] {
	own := stage.Needs
	stage.Needs = func(cr T) []engine.Need {
		needs := need(backends, Backend.needs)(cr)
		if own != nil {
			needs = append(needs, own(cr)...)
		}
		return needs
	}
	stage.Do = do(backends, Backend.ensure)
	stage.Every = func(T) time.Duration { return registerEvery }
	return stage
}

// Remove adds to a stage of a teardown the removal of backends.
func Remove[T engine.Object](stage engine.Stage[T], backends ...func(T) Backend) engine.Stage[T] {
	stage.Needs = need(backends, Backend.teardownNeeds)
	stage.Do = do(backends, Backend.remove)
	return stage
}

// Inputs returns the Secrets and Services that backends need. The first stage waits for
// them, so that a wrong name is reported at once.
func Inputs[T engine.Object](backends ...func(T) Backend) func(T) []engine.Need {
	return need(backends, Backend.inputs)
}

// Accounts returns the needs of a stage that uses the accounts of backends.
func Accounts[T engine.Object](backends ...func(T) Backend) func(T) []engine.Need {
	return need(backends, Backend.needs)
}

// Diagnosis returns the needs of a call that checks backends, and skips a backend whose
// account is not known.
func Diagnosis[T engine.Object](backends ...func(T) Backend) func(T) []engine.Need {
	return need(backends, Backend.diagnosisNeeds)
}

// Check waits if no service can use a given connection Secret. It builds nothing.
func Check[T engine.Object](backends ...func(T) Backend) func(T, engine.Inputs) ([]engine.Child, error) {
	return build(backends, Backend.check)
}

// Credentials builds the Secret with the passwords of the backends' accounts. Its stage
// must precede the registration, so that a crash loses no password. The Secret has no
// owner reference, because foreground deletion would delete it before the teardown.
func Credentials[T engine.Object](backends ...func(T) Backend) func(T, engine.Inputs) ([]engine.Child, error) {
	return func(cr T, _ engine.Inputs) ([]engine.Child, error) {
		var keys []string
		for _, backend := range backends {
			keys = append(keys, backend(cr).Key)
		}
		return []engine.Child{engine.Unowned(engine.Generated(credentials(cr), keys...))}, nil
	}
}

// WithoutCredentials deletes the Secret of Credentials at the end of a teardown.
func WithoutCredentials[T engine.Object](cr T, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(engine.Unowned(credentials(cr)))}, nil
}

func credentials(owner client.Object) *applycorev1.SecretApplyConfiguration {
	return applycorev1.Secret(credentialsName(owner), "")
}

func credentialsName(owner client.Object) string { return owner.GetName() + "-credentials" }

func need[T engine.Object](backends []func(T) Backend, needs func(Backend) []engine.Need) func(T) []engine.Need {
	return func(cr T) []engine.Need {
		var all []engine.Need
		for _, backend := range backends {
			all = append(all, needs(backend(cr))...)
		}
		return all
	}
}

// do runs call for each backend whose connection Secret is not given.
func do[T engine.Object](backends []func(T) Backend, call func(Backend, context.Context, engine.Inputs) error) func(context.Context, T, engine.Inputs) (engine.Observed, error) {
	return func(ctx context.Context, cr T, in engine.Inputs) (engine.Observed, error) {
		for _, backend := range backends {
			b := backend(cr)
			if b.Connection.Given() {
				continue
			}
			if err := call(b, ctx, in); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

func build[T engine.Object](backends []func(T) Backend, children func(Backend, engine.Inputs) ([]engine.Child, error)) func(T, engine.Inputs) ([]engine.Child, error) {
	return func(cr T, in engine.Inputs) ([]engine.Child, error) {
		var all []engine.Child
		for _, backend := range backends {
			built, err := children(backend(cr), in)
			if err != nil {
				return nil, err
			}
			all = append(all, built...)
		}
		return all, nil
	}
}
