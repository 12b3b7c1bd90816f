package volume

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumepolicies/status,verbs=patch

// Grants lists the stages of a SharedVolumePolicy, which has no children: its status lists
// the namespaces that use the grant.
var Grants = engine.Service[*storagev1.SharedVolumePolicy]{
	Name:   "shared-volume-policy",
	Stages: []engine.Stage[*storagev1.SharedVolumePolicy]{{Condition: storagev1.ConditionNamespacesKnown, Needs: users, Build: known}},
	Report: reportUsers,
}

// samplePeriod is the greatest age of the status of a SharedVolumePolicy. A change of a
// SharedVolume does not reconcile the policy, because many SharedVolumes may exist.
const samplePeriod = time.Minute

const shownNamespaces = 256

var (
	allVolumes    = engine.Sampled[*storagev1.SharedVolume](samplePeriod)
	allNamespaces = engine.Sampled[*corev1.Namespace](samplePeriod)
)

func users(*storagev1.SharedVolumePolicy) []engine.Need {
	return []engine.Need{allVolumes.Need, allNamespaces.Need}
}

// observed returns the namespaces that use the grant, by name, as the status shows them. A
// deleted namespace stays if the spec names it, because it may be created again.
func observed(policy *storagev1.SharedVolumePolicy, in engine.Inputs) map[string]storagev1.GrantUser {
	namespaces := map[string]*corev1.Namespace{}
	for _, namespace := range allNamespaces.In(in) {
		namespaces[namespace.Name] = namespace
	}
	now := map[string]storagev1.GrantUser{}
	for _, cr := range allVolumes.In(in) {
		namespace := namespaces[cr.Namespace]
		if namespace != nil && grant(policy, namespace, cr.Spec.FileSystemID, cr.Spec.AccessPointID) != "" {
			now[cr.Namespace] = storagev1.GrantUser{Name: cr.Namespace, UID: string(namespace.UID)}
		}
	}
	for _, before := range policy.Status.Namespaces {
		user, uses := now[before.Name]
		switch {
		case uses && user.UID == before.UID:
			now[before.Name] = before
		case uses:
			user.PreviousUID = before.UID
			now[before.Name] = user
		case namespaces[before.Name] == nil && slices.Contains(policy.Spec.Namespaces.Names, before.Name):
			now[before.Name] = before
		}
	}
	return now
}

// known has no children. It fails in the pass that finds a changed UID, so that an event is
// recorded; the status then has the new UID. The message names no namespace, because many
// users may read the event.
func known(policy *storagev1.SharedVolumePolicy, in engine.Inputs) ([]engine.Child, error) {
	now := observed(policy, in)
	for _, before := range policy.Status.Namespaces {
		if user, uses := now[before.Name]; uses && user.UID != before.UID {
			return nil, engine.WaitAs(storagev1.ReasonNamespaceRecreated,
				"a namespace that uses the grant was deleted and created again: see its name and previousUID in status.namespaces. Set spec.namespaces.uids to exclude such namespaces")
		}
	}
	return nil, nil
}

func reportUsers(policy *storagev1.SharedVolumePolicy, in engine.Inputs) {
	if len(allNamespaces.In(in)) == 0 {
		return // the pass has failed before it has listed the namespaces
	}
	now := observed(policy, in)
	policy.Status.Namespaces = nil
	for _, name := range slices.Sorted(maps.Keys(now))[:min(len(now), shownNamespaces)] {
		policy.Status.Namespaces = append(policy.Status.Namespaces, now[name])
	}
}
