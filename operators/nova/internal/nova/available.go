package nova

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"
	"asterism.dev/lib/registration/remote"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// reasonAPIFailed is the reason if the compute API fails a request.
const reasonAPIFailed = "APIFailed"

// requestEvery is the interval between requests to the compute API if no input changes.
func requestEvery(*novav1.Nova) time.Duration { return 30 * time.Second }

// availableNeeds are the needs of a user's request: ready pods of the API, a mapped cell,
// and an account at Keystone. The accounts of the databases are needed only to find the
// part that failed.
func availableNeeds(cr *novav1.Nova) []engine.Need {
	var mapped []engine.Need
	needs := append(registration.AccountNeeds(identity)(cr), registration.DiagnosisNeeds(apiDatabase, cell0Database)(cr)...)
	needs = append(needs,
		engine.Free(apiNamed(cr)),
		engine.Existing(apiNamed(cr)).Where(hasReadyPod).Counting(func(obj client.Object) any {
			status := obj.(*apiv1.NovaAPI).Status //nolint:forcetypeassert // the need names a NovaAPI
			return []any{status.Endpoints, status.ReadyReplicas}
		}),
		engine.Existing(superconductorNamed(cr)).Optional().Counting(scaled),
		engine.Existing(schedulerNamed(cr)).Optional().Counting(scaled))
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(cellConductorNamed(cr, cell)).Optional().Counting(scaled))
		mapped = append(mapped, engine.Existing(cellNamed(cr, cell)).Where(isMapped).Counting(func(obj client.Object) any { return obj.GetUID() }))
	}
	return append(needs, engine.AnyOf(mapped...))
}

func hasReadyPod(obj client.Object) error {
	api, ok := obj.(*apiv1.NovaAPI)
	if !ok || api.Status.ReadyReplicas > 0 || api.IsPaused() { // nobody counts the pods of a paused one
		return nil
	}
	return engine.Wait("NovaAPI %s has no ready pod%s", api.Name, notReadyMessage(api))
}

func isMapped(obj client.Object) error {
	if cell, ok := obj.(*novav1.NovaCell); ok && cell.Status.Mapping == nil {
		return engine.Wait("NovaCell %s is not mapped", cell.Name)
	}
	return nil
}

// notReadyMessage returns ": " and the message of the Ready condition, or "" if the object
// is ready or paused.
func notReadyMessage(object engine.Object) string {
	ready := meta.FindStatusCondition(object.Common().Conditions, commonv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}

// requestAPI sends requests with Nova's own account: a list of servers, which needs
// Keystone and the API database, and a list of conductors, each of which is a row in the
// database of its cell. The API leaves out cells that do not answer. If a request fails,
// the error names the part that failed, if it is found.
func requestAPI(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	address := internalAddress(cr, in)
	if address == "" {
		return nil, engine.Wait("NovaAPI %s does not report its internal address yet", apiName(cr))
	}
	keystone, err := registration.Login(ctx, identity(cr), in)
	if err != nil {
		return nil, err
	}
	defer keystone.Close()
	err = get(ctx, address+"/servers?limit=1", keystone.Token(), nil)
	var conductors []computeService
	if err == nil {
		conductors, err = listServices(ctx, address, keystone.Token(), "nova-conductor")
	}
	if err == nil {
		err = checkCells(cr, conductors)
	}
	if err != nil {
		return nil, failedPart(ctx, cr, in, err)
	}
	if !cr.IsPaused() {
		removeScaledAway(ctx, cr, in, conductors, address, keystone.Token())
	}
	return nil, nil
}

// checkCells returns nil if at least one cell answers.
func checkCells(cr *novav1.Nova, services []computeService) error {
	for _, service := range services {
		for _, cell := range cr.Spec.Cells {
			if strings.HasPrefix(service.Host, cellConductorNamed(cr, cell).Name+"-") {
				return nil
			}
		}
	}
	return errors.New("no cell answered GET /os-services: the API reaches no cell database, or no cell conductor has started yet")
}

// failedPart adds to the error of a request the part that failed, if it is found.
func failedPart(ctx context.Context, cr *novav1.Nova, in engine.Inputs, failed error) error {
	for _, database := range []registration.Account{apiDatabase(cr), cell0Database(cr)} {
		if err := registration.Answers(ctx, database, in); err != nil && engine.Reason(err) != engine.ReasonWaiting {
			return engine.Fail(engine.Reason(err), fmt.Errorf("%w: %w", failed, err))
		}
	}
	for _, cell := range cr.Spec.Cells {
		if child, ok := engine.Get[*novav1.NovaCell](in, cellName(cr, cell)); ok && notReadyMessage(child) != "" {
			return engine.Fail(reasonAPIFailed, fmt.Errorf("%w: NovaCell %s%s", failed, child.Name, notReadyMessage(child)))
		}
	}
	return engine.Fail(reasonAPIFailed, failed)
}

func internalAddress(cr *novav1.Nova, in engine.Inputs) string {
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

// get sends a request to the compute API, and decodes the answer unless answer is nil.
func get(ctx context.Context, address, token string, answer any) error {
	return send(ctx, http.MethodGet, address, token, answer)
}

// microversion is the first in which the ID of a service is a UUID, unique in all cells.
const microversion = "2.53"

func send(ctx context.Context, method, address, token string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return err
	}
	transport, err := remote.NewTransport(request.URL, nil)
	if err != nil {
		return err
	}
	defer transport.Close()
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("X-OpenStack-Nova-API-Version", microversion)
	response, err := (&http.Client{Transport: transport, Timeout: remote.AnswerTimeout}).Do(request)
	if err != nil {
		return &remote.Unreachable{Address: request.URL.Host, Err: err}
	}
	defer response.Body.Close() //nolint:errcheck // reading reports the errors
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s answered HTTP %d to %s %s", request.URL.Host, response.StatusCode, method, request.URL.Path)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
