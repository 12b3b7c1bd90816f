package volume

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

var policyList = engine.Labelled[*storagev1.SharedVolumePolicy](nil)

// policies are all SharedVolumePolicies, and the namespace with its labels. Each pass
// evaluates them again. Their contents are no inputs, because a policy for other namespaces
// must not cause writes for this SharedVolume.
func policies(cr *storagev1.SharedVolume) []engine.Need {
	needs := []engine.Need{
		engine.Existing(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cr.Namespace}}).Counting(nothing),
		policyList.Counting(nothing),
		engine.Children(),
	}
	switch {
	case isManaged(cr) && cr.Status.ManagedAccessPointID == "":
		needs = append(needs, siblings.Counting(nothing))
	case !isManaged(cr) && !isAllowed(cr):
		needs = append(needs, everyVolume.Need)
	}
	return needs
}

// everyVolume takes time with many SharedVolumes. It is read until the spec is allowed: a new
// managed access point has a new ID.
var everyVolume = engine.SampledEverywhere[*storagev1.SharedVolume](0)

func isAllowed(cr *storagev1.SharedVolume) bool {
	before := meta.FindStatusCondition(cr.Status.Conditions, storagev1.ConditionAllowed)
	return before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == cr.Generation
}

// isOfAnother says whether the operator manages the access point for another namespace.
func isOfAnother(cr *storagev1.SharedVolume, in engine.Inputs) bool {
	return slices.ContainsFunc(everyVolume.In(in), func(other *storagev1.SharedVolume) bool {
		return other.Namespace != cr.Namespace && other.Status.ManagedAccessPointID == string(cr.Spec.AccessPointID)
	})
}

// allowed has no children. If it fails, the pass ends and existing objects stay: no running
// pod loses its volume because a policy has changed.
func allowed(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	namespace, _ := engine.Get[*corev1.Namespace](in, cr.Namespace)
	if namespace == nil || namespace.DeletionTimestamp != nil {
		return nil, engine.Wait("namespace %s is being deleted", cr.Namespace)
	}
	var highest storagev1.Access
	for _, policy := range policyList.In(in) {
		granted := grantOf(policy, namespace, cr.Spec.FileSystemID, cr.Spec.AccessPointID)
		if granted == nil || granted.AccessPoints == storagev1.AccessPointsAny && isOfAnother(cr, in) {
			continue
		}
		if suffices(granted.Access, cr) {
			return nil, withinLimit(cr, in)
		}
		highest = cmp.Or(granted.Access, highest)
	}
	target := "access point " + string(cr.Spec.AccessPointID) + " of file system " + string(cr.Spec.FileSystemID)
	if isManaged(cr) {
		target = "a managed access point of file system " + string(cr.Spec.FileSystemID)
	}
	if highest != "" {
		return nil, engine.WaitAs(storagev1.ReasonDenied, "namespace %s may use %s only to read: set spec.access to ReadOnly, or ask an administrator of the cluster for a SharedVolumePolicy with access %s",
			cr.Namespace, target, wanted(cr))
	}
	return nil, engine.WaitAs(storagev1.ReasonDenied, "namespace %s may not use %s: ask an administrator of the cluster for a SharedVolumePolicy with this namespace, file system and access point, and access %s",
		cr.Namespace, target, wanted(cr))
}

func suffices(granted storagev1.Access, cr *storagev1.SharedVolume) bool {
	return granted == storagev1.AccessReadWrite || granted != "" && granted == wanted(cr)
}

func wanted(cr *storagev1.SharedVolume) storagev1.Access {
	if cr.Spec.Access == "" {
		return storagev1.AccessReadWrite
	}
	return cr.Spec.Access
}

// grant returns the access that the policy grants the namespace, "" for none. An access that
// this version does not know allows nothing. A value of accessPoints that this version does
// not know means Listed.
func grant(policy *storagev1.SharedVolumePolicy, namespace *corev1.Namespace, fileSystem storagev1.FileSystemID, accessPoint storagev1.AccessPointID) storagev1.Access {
	if found := grantOf(policy, namespace, fileSystem, accessPoint); found != nil {
		return found.Access
	}
	return ""
}

// grantOf returns the grant of an access point, or of a managed one for the ID "".
func grantOf(policy *storagev1.SharedVolumePolicy, namespace *corev1.Namespace, fileSystem storagev1.FileSystemID, accessPoint storagev1.AccessPointID) *storagev1.FileSystemGrant {
	if policy.DeletionTimestamp != nil || !includes(policy.Spec.Namespaces, namespace) {
		return nil
	}
	for i, granted := range policy.Spec.FileSystems {
		if granted.FileSystemID != fileSystem {
			continue
		}
		includes := slices.Contains(granted.AccessPointIDs, accessPoint)
		switch granted.AccessPoints {
		case storagev1.AccessPointsAny:
			includes = accessPoint != ""
		case storagev1.AccessPointsManaged:
			includes = accessPoint == "" && granted.Managed != nil
		}
		if includes {
			return &policy.Spec.FileSystems[i]
		}
	}
	return nil
}

func includes(set storagev1.NamespaceSet, namespace *corev1.Namespace) bool {
	if len(set.UIDs) > 0 && !slices.Contains(set.UIDs, string(namespace.UID)) {
		return false
	}
	if slices.Contains(set.Names, namespace.Name) {
		return true
	}
	if set.Selector == nil {
		return false
	}
	selector := &metav1.LabelSelector{MatchLabels: set.Selector.MatchLabels}
	for _, requirement := range set.Selector.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement(requirement))
	}
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && matcher.Matches(labels.Set(namespace.Labels)) // an invalid selector selects nothing
}
