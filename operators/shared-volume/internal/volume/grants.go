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

// Grants is the table of contents of a SharedVolumePolicy, which makes nothing: its
// status says who uses what is granted.
var Grants = engine.Service[*storagev1.SharedVolumePolicy]{
	Name:   "shared-volume-policy",
	Stages: []engine.Stage[*storagev1.SharedVolumePolicy]{{Condition: storagev1.ConditionNamespacesKnown, Needs: users, Build: known}},
	Report: reportUsers,
}

// lookEvery is how old a SharedVolumePolicy's status may be. A policy is not woken by
// each change of a SharedVolume, of which there are many.
const lookEvery = time.Minute

const shownNamespaces = 256

func users(*storagev1.SharedVolumePolicy) []engine.Need {
	return []engine.Need{engine.Sampled(&storagev1.SharedVolume{}, lookEvery), engine.Sampled(&corev1.Namespace{}, lookEvery)}
}

// observed are the namespaces that use what the policy grants, as its status is to show
// them, by name. A namespace that the spec names and that does not exist stays: it may be
// created again.
func observed(policy *storagev1.SharedVolumePolicy, in engine.Inputs) map[string]storagev1.GrantUser {
	namespaces := map[string]*corev1.Namespace{}
	for _, namespace := range engine.Listed[*corev1.Namespace](in) {
		namespaces[namespace.Name] = namespace
	}
	now := map[string]storagev1.GrantUser{}
	for _, cr := range engine.Listed[*storagev1.SharedVolume](in) {
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

// known makes nothing. It fails in the pass that finds another UID, so that there is an
// event; the status then has that UID. Many may read the event, which names no namespace.
func known(policy *storagev1.SharedVolumePolicy, in engine.Inputs) ([]engine.Child, error) {
	now := observed(policy, in)
	for _, before := range policy.Status.Namespaces {
		if user, uses := now[before.Name]; uses && user.UID != before.UID {
			return nil, engine.WaitAs(storagev1.ReasonNamespaceRecreated,
				"a namespace that uses what is granted was deleted and created again: status.namespaces has its name and previousUID. Set spec.namespaces.uids to grant nothing to a namespace that is created again")
		}
	}
	return nil, nil
}

func reportUsers(policy *storagev1.SharedVolumePolicy, in engine.Inputs) {
	if len(engine.Listed[*corev1.Namespace](in)) == 0 {
		return // the pass has failed before it looked
	}
	now := observed(policy, in)
	policy.Status.Namespaces = nil
	for _, name := range slices.Sorted(maps.Keys(now))[:min(len(now), shownNamespaces)] {
		policy.Status.Namespaces = append(policy.Status.Namespaces, now[name])
	}
}
