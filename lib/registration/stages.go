package registration

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

// Register adds to a stage the registration of accounts, and their connection Secrets.
func Register[T engine.Object](stage engine.Stage[T], accounts ...func(T) Account) engine.Stage[T] {
	stage = RegisterOnly(stage, accounts...)
	stage.Build = Secrets(accounts...)
	return stage
}

// RegisterOnly is Register without the connection Secrets. The needs of the accounts
// precede the needs of the stage.
func RegisterOnly[T engine.Object](stage engine.Stage[T], accounts ...func(T) Account) engine.Stage[T] {
	own := stage.Needs
	stage.Needs = func(cr T) []engine.Need {
		needs := need(accounts, Account.needs)(cr)
		if own != nil {
			needs = append(needs, own(cr)...)
		}
		return needs
	}
	stage.Do = Ensure(accounts...)
	stage.Every = Every[T]
	return stage
}

// Ensure is the Do of a stage that registers accounts, and AccountNeeds are its needs.
func Ensure[T engine.Object](accounts ...func(T) Account) func(context.Context, T, engine.Inputs) (engine.Observed, error) {
	return do(accounts, Account.ensure)
}

// Every is the Every of a stage with Ensure.
func Every[T engine.Object](T) time.Duration { return registerEvery }

// Secrets builds the connection Secrets of accounts.
func Secrets[T engine.Object](accounts ...func(T) Account) func(T, engine.Inputs) ([]engine.Child, error) {
	return build(accounts, func(a Account, in engine.Inputs) ([]engine.Child, error) {
		_, secret, err := a.Secret(in)
		return secret, err
	})
}

// Remove adds to a stage of a teardown the removal of accounts.
func Remove[T engine.Object](stage engine.Stage[T], accounts ...func(T) Account) engine.Stage[T] {
	stage.Needs = need(accounts, Account.teardownNeeds)
	stage.Do = do(accounts, Account.remove)
	return stage
}

// InputNeeds returns the Secrets and Services that accounts need. The first stage waits for
// them, so that a wrong name is reported at once.
func InputNeeds[T engine.Object](accounts ...func(T) Account) func(T) []engine.Need {
	return need(accounts, Account.inputs)
}

// AccountNeeds returns the needs of a stage that registers or uses accounts.
func AccountNeeds[T engine.Object](accounts ...func(T) Account) func(T) []engine.Need {
	return need(accounts, Account.needs)
}

// DiagnosisNeeds returns the needs of a call that checks accounts, and skips an account that is
// not known.
func DiagnosisNeeds[T engine.Object](accounts ...func(T) Account) func(T) []engine.Need {
	return need(accounts, Account.diagnosisNeeds)
}

// Check waits if no service can use a given connection Secret. It builds nothing.
func Check[T engine.Object](accounts ...func(T) Account) func(T, engine.Inputs) ([]engine.Child, error) {
	return build(accounts, Account.check)
}

// Credentials builds the Secret with the passwords of the accounts. Its stage
// must precede the registration, so that a crash loses no password. The Secret has no
// owner reference, because foreground deletion would delete it before the teardown.
func Credentials[T engine.Object](accounts ...func(T) Account) func(T, engine.Inputs) ([]engine.Child, error) {
	return func(cr T, _ engine.Inputs) ([]engine.Child, error) {
		var keys []string
		for _, account := range accounts {
			keys = append(keys, account(cr).Key)
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

func need[T engine.Object](accounts []func(T) Account, needs func(Account) []engine.Need) func(T) []engine.Need {
	return func(cr T) []engine.Need {
		var all []engine.Need
		for _, account := range accounts {
			all = append(all, needs(account(cr))...)
		}
		return all
	}
}

// do runs call for each account whose connection Secret is not given.
func do[T engine.Object](accounts []func(T) Account, call func(Account, context.Context, engine.Inputs) error) func(context.Context, T, engine.Inputs) (engine.Observed, error) {
	return func(ctx context.Context, cr T, in engine.Inputs) (engine.Observed, error) {
		for _, account := range accounts {
			a := account(cr)
			if a.Connection.Given() {
				continue
			}
			if err := call(a, ctx, in); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

func build[T engine.Object](accounts []func(T) Account, children func(Account, engine.Inputs) ([]engine.Child, error)) func(T, engine.Inputs) ([]engine.Child, error) {
	return func(cr T, in engine.Inputs) ([]engine.Child, error) {
		var all []engine.Child
		for _, account := range accounts {
			built, err := children(account(cr), in)
			if err != nil {
				return nil, err
			}
			all = append(all, built...)
		}
		return all, nil
	}
}
