package nova

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// inputsAndServers are the inputs, all of them before anything is registered, so
// that a typing error in the last of them does not wait for a database; and the
// objects by which Available is judged. The first stage looks at those, because
// a later stage may not be reached while the API serves; nothing waits for them.
func inputsAndServers(cr *novav1.Nova) []engine.Need {
	needs := backend.Inputs(backends...)(cr)
	if cr.Spec.MetadataSecretRef != nil {
		needs = append(needs, engine.Secret(cr.Spec.MetadataSecretRef.Name, config.KeySharedSecret))
	}
	needs = append(needs, engine.Existing(theAPI(cr)).As(apiName(cr)))
	for _, cell := range cr.Spec.Cells {
		made := theCell(cr, cell)
		needs = append(needs, engine.Existing(made).As(made.Name))
	}
	return needs
}

// reportAvailable: the API serves, and there is a cell in which servers can be.
// Pods that answer and a mapping that was recorded count, not whether their
// objects are ready: users are served while a revision is rolled out, and while
// it fails.
func reportAvailable(cr *novav1.Nova, in engine.Inputs) {
	if cr.DeletionTimestamp != nil {
		return
	}
	available := metav1.Condition{
		Type: commonv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: engine.ReasonComplete, ObservedGeneration: cr.Generation,
	}
	if missing := unavailable(cr, in); missing != "" {
		available.Status, available.Reason, available.Message = metav1.ConditionFalse, engine.ReasonWaiting, missing
	}
	conditions := &cr.Status.Conditions
	if meta.FindStatusCondition(*conditions, available.Type) == nil { // Ready comes last
		*conditions = slices.Insert(*conditions, max(0, len(*conditions)-1), metav1.Condition{Type: available.Type})
	}
	meta.SetStatusCondition(conditions, available)
}

// unavailable says why users are not served, "" if they are.
func unavailable(cr *novav1.Nova, in engine.Inputs) string {
	api, ok := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	switch {
	case !ok || !in.Ours(api):
		return fmt.Sprintf("NovaAPI %s does not exist", apiName(cr))
	case api.Status.ReadyReplicas == 0:
		return fmt.Sprintf("NovaAPI %s has no pod that is ready%s", api.Name, because(api))
	}
	for _, cell := range cr.Spec.Cells {
		made, ok := engine.Get[*novav1.NovaCell](in, cellName(cr, cell))
		if ok && in.Ours(made) && made.Status.Mapping != nil {
			return ""
		}
	}
	return "no cell is mapped"
}

// because repeats what an object says of itself while it is not ready.
func because(object engine.Object) string {
	ready := meta.FindStatusCondition(object.Common().Conditions, commonv1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}
