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

// room is what must not be taken: a volume that is reserved for a claim of
// somebody else's would be bound to it. A SharedVolume that has found the claim's
// name taken looks at all others as well: the claim that had the name may only be
// away to be recreated.
func room(cr *storagev1.SharedVolume) []engine.Need {
	needs := []engine.Need{engine.Free(claimNamed(cr)), engine.Free(volumeNamed(Name(cr))), engine.Children()}
	if cr.Status.ClaimName != cr.ClaimName() && meta.IsStatusConditionFalse(cr.Status.Conditions, storagev1.ConditionCleared) {
		needs = append(needs, engine.Labelled(&storagev1.SharedVolume{}, nil).Counting(func(client.Object) any { return nil }))
	}
	return needs
}

// cleared removes what is not as the spec wants it and cannot become so: the
// claim first, and its volume when the claim is gone. A claim or a volume that
// has lost its other half goes as well, and both are made anew.
func cleared(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	for _, other := range engine.Listed[*storagev1.SharedVolume](in) {
		if other.UID != cr.UID && other.Status.ClaimName == cr.ClaimName() {
			return nil, engine.Conflict("PersistentVolumeClaim %s is that of SharedVolume %s: choose another spec.claimName", cr.ClaimName(), other.Name)
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
			stale = append(stale, released(cr, claim))
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

// claimStays if nothing of it would have to change, and its volume, if it has one,
// stays too. A claim that is lost although its volume is there gets it back.
func claimStays(cr *storagev1.SharedVolume, claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) (bool, error) {
	if claim.DeletionTimestamp != nil {
		return false, nil
	}
	if err := whoseVolume(claim, volumes); err != nil {
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

// whoseVolume is an error where the claim's is not one of ours. Kubernetes names the
// volume first, and says Bound later: a foreign one is recognized by its name.
func whoseVolume(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) error {
	name := claim.Spec.VolumeName
	isOurs := func(volume *corev1.PersistentVolume) bool { return volume.Name == name }
	switch {
	case name == "" || claim.Status.Phase == corev1.ClaimLost || slices.ContainsFunc(volumes, isOurs):
		return nil
	case !names.MatchString(name):
		return engine.Conflict("PersistentVolume %s, which no SharedVolume has created, was reserved for claim %s and is bound to it: an administrator of the cluster has to delete that volume", name, claim.Name)
	case claim.Status.Phase == corev1.ClaimBound:
		return engine.Wait("PersistentVolume %s is gone: Kubernetes has not noticed yet that claim %s is lost", name, claim.Name)
	}
	return nil
}

// volumeStays if nothing of it would have to change, and it is for the claim that
// stays. A reservation that somebody has taken from a claim is given back.
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
	gone := []engine.Child{released(cr, claimNamed(cr))}
	for _, claim := range engine.ChildrenOf[*corev1.PersistentVolumeClaim](in) {
		if claim.Name != cr.ClaimName() {
			gone = append(gone, released(cr, claim))
		}
	}
	return gone, nil
}

func withoutVolume(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	gone := []engine.Child{engine.Absent(volumeNamed(Name(cr)))}
	for _, volume := range engine.ChildrenOf[*corev1.PersistentVolume](in) {
		if volume.Name != Name(cr) {
			gone = append(gone, engine.Absent(volumeNamed(volume.Name)))
		}
	}
	return gone, nil
}

// released is a claim that is deleted, and may have to wait for pods.
func released(cr *storagev1.SharedVolume, claim *corev1.PersistentVolumeClaim) engine.Child {
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
	// podPage is how many pods one request lists.
	podPage = 500
)

// podsOf are the names of the pods that keep a claim from being deleted. They are
// never watched.
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

// enumerate pods as people read them: how many, and the first of them.
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

// uses says whether a pod keeps a claim from being deleted: it has a node, and has
// not ended.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
	})
}
