package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// room is what must not be taken: a volume that is reserved for a claim of
// somebody else's would be bound to it. Who has found the claim's name taken looks at
// whose it is as well: its claim may only be away to be made anew.
func room(cr *storagev1.SharedVolume) []engine.Need {
	needs := []engine.Need{engine.Free(claimNamed(cr)), engine.Free(volumeNamed(Name(cr))), engine.Children()}
	if isRefused(cr) {
		needs = append(needs, engine.Labelled(&storagev1.SharedVolume{}, nil).Counting(func(client.Object) any { return nil }))
	}
	return needs
}

// isRefused says whether the SharedVolume waits for a name that something else has.
func isRefused(cr *storagev1.SharedVolume) bool {
	cleared := meta.FindStatusCondition(cr.Status.Conditions, storagev1.ConditionCleared)
	return cleared != nil && cleared.Status == metav1.ConditionFalse && (cleared.Reason == engine.ReasonConflict || !hasClaimed(cr))
}

func hasClaimed(cr *storagev1.SharedVolume) bool {
	claimed := meta.FindStatusCondition(cr.Status.Conditions, storagev1.ConditionClaimed)
	return claimed != nil && claimed.Reason != engine.ReasonNotReached
}

// holdsClaim says whether another SharedVolume has the claim of that name.
func holdsClaim(cr *storagev1.SharedVolume, name string) bool {
	return cr.ClaimName() == name && hasClaimed(cr) && !isRefused(cr)
}

// cleared removes what is not as the spec wants it and cannot become so: the
// claim first, and its volume when the claim is gone. A claim or a volume that
// has lost its other half goes as well, and both are made anew.
func cleared(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	for _, other := range engine.Listed[*storagev1.SharedVolume](in) {
		if other.UID != cr.UID && holdsClaim(other, cr.ClaimName()) {
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
			stale = append(stale, going(claim))
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
	if claim.Name != cr.ClaimName() || !asksFor(claim, cr.Spec.Capacity) {
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
		return engine.Conflict("PersistentVolume %s, which is not ours, was reserved for claim %s, and is bound to it: an administrator of the cluster has to remove that volume", name, claim.Name)
	case claim.Status.Phase == corev1.ClaimBound:
		return engine.Wait("PersistentVolume %s is gone: Kubernetes has not noticed yet that claim %s is lost", name, claim.Name)
	}
	return nil
}

func asksFor(claim *corev1.PersistentVolumeClaim, capacity string) bool {
	wanted, err := resource.ParseQuantity(capacity)
	return err != nil || claim.Spec.Resources.Requests.Storage().Cmp(wanted) == 0 // what is wrong is reported when it is built
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
	gone := []engine.Child{going(claimNamed(cr))}
	for _, claim := range engine.ChildrenOf[*corev1.PersistentVolumeClaim](in) {
		if claim.Name != cr.ClaimName() {
			gone = append(gone, going(claim))
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

// going is a claim that is deleted and may have to wait for pods.
func going(claim *corev1.PersistentVolumeClaim) engine.Child {
	named := &corev1.PersistentVolumeClaim{}
	named.Name = claim.Name
	return engine.HeldBy(engine.Holders{Kind: &corev1.PodList{}, Hold: uses}, engine.Absent(named))
}

// uses says whether a pod keeps a claim from going: it has a node, and has not ended.
func uses(holder, claim client.Object) bool {
	pod, ok := holder.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.GetName() {
			return true
		}
	}
	return false
}
