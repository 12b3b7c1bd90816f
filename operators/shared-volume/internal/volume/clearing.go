package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

var (
	// siblings are the SharedVolumes of the namespace.
	siblings = engine.Labelled[*storagev1.SharedVolume](nil)
	// quietSiblings are siblings that start no pass: otherwise, of N SharedVolumes that are
	// created at once, each would cause N passes.
	quietSiblings = engine.Sampled[*storagev1.SharedVolume](0)
)

// freeNames requires that no other owner has the names of the claim and the volume: a volume
// that is reserved for the claim of another owner would be bound to that claim. Until the
// SharedVolume has a claim of this name, the other SharedVolumes are read as well, because the
// claim of one of them may be absent only until its recreation. After a conflict, it waits for
// their changes.
func freeNames(cr *storagev1.SharedVolume) []engine.Need {
	needs := []engine.Need{engine.Free(claimNamed(cr)), engine.Free(volumeNamed(Name(cr))), engine.Children()}
	switch {
	case cr.Status.ClaimName == cr.ClaimName():
	case meta.IsStatusConditionFalse(cr.Status.Conditions, storagev1.ConditionCleared):
		needs = append(needs, siblings.Counting(nothing))
	default:
		needs = append(needs, quietSiblings.Need)
	}
	return needs
}

// cleared deletes a claim or volume that differs from the spec and cannot be changed in
// place: the claim first, and its volume when the claim is gone. A claim that has lost its
// volume, or a volume without its claim, is also deleted. Later stages recreate both.
func cleared(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	for _, other := range slices.Concat(siblings.In(in), quietSiblings.In(in)) {
		if other.UID != cr.UID && other.Status.ClaimName == cr.ClaimName() {
			return nil, engine.Conflict("PersistentVolumeClaim %s belongs to SharedVolume %s: choose another spec.claimName", cr.ClaimName(), other.Name)
		}
	}
	volumes := engine.ChildrenOf[*corev1.PersistentVolume](in)
	var staying *corev1.PersistentVolumeClaim
	var stale []engine.Child
	for _, claim := range engine.ChildrenOf[*corev1.PersistentVolumeClaim](in) {
		stays, err := claimStays(cr, claim, volumes)
		if err != nil {
			return nil, err
		}
		if stays {
			staying = claim
		} else {
			stale = append(stale, deleted(cr, claim))
		}
	}
	if len(stale) > 0 {
		return stale, nil
	}
	for _, volume := range volumes {
		if !volumeStays(cr, volume, staying) {
			stale = append(stale, engine.Absent(volumeNamed(volume.Name)))
		}
	}
	return stale, nil
}

// claimStays says whether the claim has the name and capacity of the spec, and its volume,
// if any, stays too. A lost claim stays if its volume exists, and is bound again.
func claimStays(cr *storagev1.SharedVolume, claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) (bool, error) {
	if claim.DeletionTimestamp != nil {
		return false, nil
	}
	if err := checkVolume(claim, volumes); err != nil {
		return false, err
	}
	if claim.Name != cr.ClaimName() || claim.Spec.Resources.Requests.Storage().Cmp(cr.Spec.Capacity) != 0 {
		return false, nil
	}
	for _, volume := range volumes {
		if volume.Name == claim.Spec.VolumeName || claim.Spec.VolumeName == "" && volume.Name == Name(cr) {
			return volumeStays(cr, volume, claim), nil
		}
	}
	return claim.Spec.VolumeName == "", nil
}

// checkVolume returns an error if the claim has a volume of another owner. Kubernetes sets
// the name of the volume before the phase Bound, so that the name identifies the volume.
func checkVolume(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) error {
	name := claim.Spec.VolumeName
	isNamed := func(volume *corev1.PersistentVolume) bool { return volume.Name == name }
	switch {
	case name == "" || claim.Status.Phase == corev1.ClaimLost || slices.ContainsFunc(volumes, isNamed):
		return nil
	case !names.MatchString(name):
		return engine.Conflict("PersistentVolume %s, which no SharedVolume has created, was reserved for claim %s and is bound to it: ask an administrator of the cluster to delete PersistentVolume %s", name, claim.Name, name)
	case claim.Status.Phase == corev1.ClaimBound:
		return engine.Wait("PersistentVolume %s is gone: waiting until Kubernetes sets claim %s to Lost", name, claim.Name)
	}
	return nil
}

// volumeStays says whether the volume has the access point and access of the spec, and is
// reserved for the claim that stays. If another user has removed or changed the reservation
// for a claim that was bound, the volume stays and is reserved again.
func volumeStays(cr *storagev1.SharedVolume, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || volume.Name != Name(cr) || volume.DeletionTimestamp != nil || volume.Spec.CSI.ReadOnly != readOnly(cr) {
		return false
	}
	reserved := volume.Spec.ClaimRef
	return wasBound(claim) || reserved == nil || reserved.UID == "" || reserved.UID == claim.UID
}

// wasBound says whether Kubernetes has ever bound the claim.
func wasBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
}

func withoutClaim(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	claims := []engine.Child{deleted(cr, claimNamed(cr))}
	for _, claim := range engine.ChildrenOf[*corev1.PersistentVolumeClaim](in) {
		if claim.Name != cr.ClaimName() {
			claims = append(claims, deleted(cr, claim))
		}
	}
	return claims, nil
}

func withoutVolume(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	volumes := []engine.Child{engine.Absent(volumeNamed(Name(cr)))}
	for _, volume := range engine.ChildrenOf[*corev1.PersistentVolume](in) {
		if volume.Name != Name(cr) {
			volumes = append(volumes, engine.Absent(volumeNamed(volume.Name)))
		}
	}
	return volumes, nil
}

// deleted deletes the claim, and reports the pods that delay the deletion.
func deleted(cr *storagev1.SharedVolume, claim *corev1.PersistentVolumeClaim) engine.Child {
	return engine.Explained(engine.Absent(claimOf(claim.Name)), func(ctx context.Context, live client.Reader, claim client.Object) (string, error) {
		pods, err := podsOf(ctx, live, claim)
		if cr.Status.BlockedBy = nil; err != nil || len(pods) == 0 {
			return "", err
		}
		cr.Status.BlockedBy = &storagev1.Blockers{Pods: pods[:min(len(pods), shownPods)], Count: int32(min(len(pods), maxCount))} //nolint:gosec // bounded
		return enumerate(pods), nil
	})
}

const (
	shownPods = 10
	maxCount  = 1 << 30
	// podPage is the number of pods in one page of a list.
	podPage = 500
)

// podsOf returns the sorted names of the pods that prevent the deletion of a claim. Pods are
// listed and not watched.
func podsOf(ctx context.Context, live client.Reader, claim client.Object) ([]string, error) {
	var names []string
	var page corev1.PodList
	for {
		err := live.List(ctx, &page, client.InNamespace(claim.GetNamespace()), client.Limit(podPage), client.Continue(page.Continue))
		if err != nil {
			return nil, fmt.Errorf("listing the pods that use claim %s: %w", claim.GetName(), err)
		}
		for _, pod := range page.Items {
			if uses(&pod, claim.GetName()) {
				names = append(names, pod.Name)
			}
		}
		if page.Continue == "" {
			slices.Sort(names)
			return names, nil
		}
	}
}

// enumerate returns the number of the pods and the first names, for a message.
func enumerate(pods []string) string {
	shown, more := pods, ""
	if len(pods) > shownPods {
		shown, more = pods[:shownPods], ", …"
	}
	if len(pods) == 1 {
		return "1 pod uses it: " + pods[0]
	}
	return fmt.Sprintf("%d pods use it: %s%s", len(pods), strings.Join(shown, ", "), more)
}

// uses says whether a pod prevents the deletion of a claim: the pod has a node, has not
// ended, and mounts the claim.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
	})
}
