package nova

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
	"asterism.dev/operators/nova/internal/registration"
)

// reasonAPIFailed says that the compute API did not answer a request as it should.
const reasonAPIFailed = "APIFailed"

// askEvery is how often the compute API is asked while nothing happens.
func askEvery(*novav1.Nova) time.Duration { return 30 * time.Second }

// availableNeeds are those of a request that a user would make: pods of the API
// that answer, a cell in which servers can be, and an account at Keystone.
func availableNeeds(cr *novav1.Nova) []engine.Need {
	var mapped []engine.Need
	needs := append(backend.Accounts(identity, apiDatabase, cell0Database)(cr),
		engine.Free(apiNamed(cr)),
		engine.Existing(apiNamed(cr)).Where(answers).Counting(func(obj client.Object) any {
			status := obj.(*apiv1.NovaAPI).Status //nolint:forcetypeassert // it is what was named
			return []any{status.Endpoints, status.ReadyReplicas}
		}))
	for _, cell := range cr.Spec.Cells {
		mapped = append(mapped, engine.Existing(cellNamed(cr, cell)).Where(isMapped).Counting(func(obj client.Object) any { return obj.GetUID() }))
	}
	return append(needs, engine.AnyOf(mapped...))
}

func answers(obj client.Object) error {
	api, ok := obj.(*apiv1.NovaAPI)
	if !ok || api.Status.ReadyReplicas > 0 {
		return nil
	}
	return engine.Wait("NovaAPI %s has no pod that is ready%s", api.Name, because(api))
}

func isMapped(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Status.Mapping == nil {
		return engine.Wait("NovaCell %s is not mapped", cell.Name)
	}
	return nil
}

// because repeats what an object says of itself while it is not ready.
func because(object engine.Object) string {
	ready := meta.FindStatusCondition(object.Common().Conditions, commonv1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}

// askAPI lists servers with Nova's own account, which goes through Keystone, the
// API database and every cell. If that fails, the part that failed is looked for.
func askAPI(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	keystone, err := backend.Login(ctx, identity(cr), in)
	if err != nil {
		return nil, err
	}
	defer keystone.Close()
	failed := listServers(ctx, internalURL(cr, in), keystone.Token())
	if failed == nil {
		return nil, nil
	}
	for _, database := range []backend.Backend{apiDatabase(cr), cell0Database(cr)} {
		if err := backend.Answers(ctx, database, in); err != nil {
			return nil, engine.Fail(engine.Reason(err), fmt.Errorf("%w: %w", failed, err))
		}
	}
	for _, cell := range cr.Spec.Cells {
		if made, ok := engine.Get[*novav1.NovaCell](in, cellName(cr, cell)); ok && because(made) != "" {
			return nil, engine.Fail(reasonAPIFailed, fmt.Errorf("%w: NovaCell %s%s", failed, made.Name, because(made)))
		}
	}
	return nil, engine.Fail(reasonAPIFailed, failed)
}

func internalURL(cr *novav1.Nova, in engine.Inputs) string {
	api, ok := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	if !ok {
		return ""
	}
	at := slices.IndexFunc(api.Status.Endpoints, func(e commonv1.Endpoint) bool { return e.Interface == commonv1.InterfaceInternal })
	if at < 0 {
		return ""
	}
	return api.Status.Endpoints[at].URL
}

func listServers(ctx context.Context, api, token string) error {
	transport, err := registration.NewTransport(nil)
	if err != nil {
		return err
	}
	defer transport.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/servers?limit=1", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", token)
	response, err := (&http.Client{Transport: transport, Timeout: registration.AnswerTimeout}).Do(request)
	if err != nil {
		return &registration.Unreachable{Address: request.URL.Host, Err: err}
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered HTTP %d to GET /servers", request.URL.Host, response.StatusCode)
	}
	return nil
}
