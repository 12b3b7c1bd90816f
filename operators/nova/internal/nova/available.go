package nova

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// reasonAPIFailed is the reason if the compute API fails a request.
const reasonAPIFailed = "APIFailed"

// requestEvery is the interval between requests to the compute API if no input changes.
func requestEvery(*novav1.Nova) time.Duration { return 30 * time.Second }

// availableNeeds are the needs of a user's request: ready pods of the API, a mapped cell, and the
// account at Keystone with which the API runs; and what a client of the API needs. The accounts of the
// databases are needed only to find the part that failed.
func availableNeeds(cr *novav1.Nova) []engine.Need {
	var mapped []engine.Need
	needs := registration.DiagnosisNeeds(apiDatabase, cell0Database)(cr)
	needs = append(needs,
		engine.Free(apiNamed(cr)),
		engine.SecretOf(apiNamed(cr), identityOf),
		engine.Existing(apiNamed(cr)).Where(hasReadyPod).Counting(func(obj client.Object) any {
			status := obj.(*apiv1.NovaAPI).Status //nolint:forcetypeassert // the need names a NovaAPI
			return []any{status.Endpoints, status.ReadyReplicas}
		}),
		engine.Existing(superconductorNamed(cr)).Optional().Counting(scaled),
		engine.Existing(schedulerNamed(cr)).Optional().Counting(scaled))
	needs = append(needs, certificateNeeds(cr)...)
	for _, cell := range cr.Spec.Cells {
		needs = append(needs, engine.Existing(cellConductorNamed(cr, cell)).Optional().Counting(scaled))
		mapped = append(mapped, engine.Existing(cellNamed(cr, cell)).Where(isMapped).Counting(func(obj client.Object) any { return obj.GetUID() }))
	}
	return append(needs, engine.AnyOf(mapped...))
}

// identityOf returns the name of the connection Secret of Keystone with which the API runs.
func identityOf(obj client.Object) string {
	return obj.(*apiv1.NovaAPI).Spec.IdentitySecretRef.Name //nolint:forcetypeassert // the need names a NovaAPI
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

// requestAPI sends requests with the API's own account: a list of servers, which needs
// Keystone and the API database, and a list of conductors, each of which is a row in the
// database of its cell. The API leaves out cells that do not answer. If a request fails,
// the error names the part that failed, if it is found. It observes the endpoints of other services
// in the catalog of the login.
func requestAPI(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	api, err := newAPIClient(cr, in)
	if err != nil {
		return nil, err
	}
	running, _ := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	keystone, err := registration.Login(ctx, in.Secret(identityOf(running)))
	if err != nil {
		return nil, err
	}
	defer keystone.Close()
	api.token = keystone.Token()
	err = api.get(ctx, "/servers?limit=1", nil)
	var conductors []computeService
	if err == nil {
		conductors, err = api.listServices(ctx, "nova-conductor")
	}
	if err == nil {
		err = checkCells(cr, conductors)
	}
	if err != nil {
		return nil, failedPart(ctx, cr, in, err)
	}
	if !cr.IsPaused() {
		removeScaledAway(ctx, cr, in, conductors, api)
	}
	return observeServices(cr, keystone.Endpoint), nil
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

// failedPart adds to the error of a request the part that failed, if it is found. A refused
// certificate is that part: the API has not received the request.
func failedPart(ctx context.Context, cr *novav1.Nova, in engine.Inputs, failed error) error {
	if refused := (*tls.CertificateVerificationError)(nil); errors.As(failed, &refused) {
		return engine.Fail(reasonAPIFailed, failed)
	}
	for _, database := range []registration.Account{apiDatabase(cr), cell0Database(cr)} {
		if err := registration.Answers(ctx, database, in); err != nil && engine.Reason(err) != engine.ReasonWaiting {
			return engine.Fail(engine.Reason(err), fmt.Errorf("%w: %w", failed, err))
		}
	}
	for _, cell := range cr.Spec.Cells {
		if child, ok := engine.Get[*novav1.NovaCell](in, novaCellName(cr, cell)); ok && notReadyMessage(child) != "" {
			return engine.Fail(reasonAPIFailed, fmt.Errorf("%w: NovaCell %s%s", failed, child.Name, notReadyMessage(child)))
		}
	}
	return engine.Fail(reasonAPIFailed, failed)
}
