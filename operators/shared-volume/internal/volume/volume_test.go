package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

var subject = enginetest.Subject[*storagev1.SharedVolume]{
	Service:     Service,
	AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
	Conditions:  storagev1.SharedVolumeConditions,
	Explained:   []enginetest.Right{{Verb: "list", Resource: "pods"}},
}

func TestSharedVolume(t *testing.T) { subject.Test(t) }

func TestSharedVolumePolicy(t *testing.T) {
	enginetest.Subject[*storagev1.SharedVolumePolicy]{
		Service:     Grants,
		AddToScheme: []func(*runtime.Scheme) error{storagev1.AddToScheme},
		Conditions:  storagev1.SharedVolumePolicyConditions,
		Testdata:    "testdata-policy",
	}.Test(t)
}

func named(namespace, name string, uid types.UID) *storagev1.SharedVolume {
	return &storagev1.SharedVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
		Spec:       storagev1.SharedVolumeSpec{FileSystemID: "fs-484648c8", AccessPointID: "fsap-097bd0daaba932e64"},
	}
}

// TestNameFollowsUID: names would not do, because they can concatenate to the same string.
func TestNameFollowsUID(t *testing.T) {
	first, second := named("a", "b-c", "1"), named("a-b", "c", "2")
	if Name(first) == Name(second) {
		t.Error("two SharedVolumes have the same name of a volume")
	}
	again := named("a", "b-c", "3")
	if Name(first) == Name(again) {
		t.Error("a SharedVolume and its former namesake have the same name of a volume")
	}
	changed := named("a", "b-c", "1")
	changed.Spec.AccessPointID = "fsap-00000000"
	if Name(first) == Name(changed) {
		t.Error("two access points have the same name of a volume")
	}
}

// TestVolumeIsProvenByName: no mutable field proves the owner of a volume.
func TestVolumeIsProvenByName(t *testing.T) {
	first, second := named("a", "b", "1"), named("a", "c", "2")
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: Name(first), Labels: map[string]string{"asterism.dev/owner-uid": "2"}}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: Handle(first.Spec.FileSystemID, first.Spec.AccessPointID)}
	if !proven(first, volume) || proven(second, volume) {
		t.Error("a label decides which SharedVolume owns the volume")
	}
}

// TestClaimIsProvenByItsSelector: no mutable field proves the owner of a claim.
func TestClaimIsProvenByItsSelector(t *testing.T) {
	cr := named("a", "images", "1")
	for name, c := range map[string]struct {
		class, owner string
		proven       bool
	}{
		"own":                     {"shared-volume", "1", true},
		"of another SharedVolume": {"shared-volume", "2", false},
		"of another class":        {"gp3", "1", false},
		"without a selector":      {"shared-volume", "", false},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "images", Labels: map[string]string{"asterism.dev/owner-uid": "1"}}}
		claim.Spec.StorageClassName = &c.class
		if c.owner != "" {
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"asterism.dev/owner-uid": c.owner}}
		}
		if got := proven(cr, claim); got != c.proven {
			t.Errorf("claim %s: proven %t", name, got)
		}
	}
}

func TestOnlyRunningPodsUseAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		uses   bool
	}{
		"runs":         {func(*corev1.Pod) {}, true},
		"has no node":  {func(p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"has ended":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		"has failed":   {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"uses another": {func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }, false},
		"uses none":    {func(p *corev1.Pod) { p.Spec.Volumes = nil }, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}}
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "images"}}}}
		c.change(pod)
		if uses(pod, "images") != c.uses {
			t.Errorf("a pod that %s: uses the claim: %t, want %t", name, !c.uses, c.uses)
		}
	}
}

// TestForeignVolumeIsAConflict as soon as Kubernetes has written its name into the claim,
// which is before the phase Bound, and whether or not the spec has changed.
func TestForeignVolumeIsAConflict(t *testing.T) {
	cr := named("a", "images", "1")
	cr.Spec.Capacity = resource.MustParse("1Gi")
	own := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: Name(cr)}}
	own.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: Handle(cr.Spec.FileSystemID, cr.Spec.AccessPointID)}
	for name, c := range map[string]struct {
		volume, capacity string
		phase            corev1.PersistentVolumeClaimPhase
		stays            bool
		refused          string
	}{
		"not bound":                          {"", "1Gi", corev1.ClaimPending, true, ""},
		"bound":                              {own.Name, "1Gi", corev1.ClaimBound, true, ""},
		"other capacity":                     {own.Name, "2Gi", corev1.ClaimBound, false, ""},
		"foreign volume, pending":            {"foreign", "1Gi", corev1.ClaimPending, false, "was reserved for claim"},
		"foreign volume, bound":              {"foreign", "1Gi", corev1.ClaimBound, false, "was reserved for claim"},
		"foreign volume, other capacity":     {"foreign", "2Gi", corev1.ClaimBound, false, "was reserved for claim"},
		"foreign volume, lost":               {"foreign", "1Gi", corev1.ClaimLost, false, ""},
		"former volume, lost":                {"sv-0123456789abcdef", "1Gi", corev1.ClaimLost, false, ""},
		"former volume is gone, still bound": {"sv-0123456789abcdef", "1Gi", corev1.ClaimBound, false, "sets claim images to Lost"},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "images"}}
		claim.Spec.VolumeName, claim.Status.Phase = c.volume, c.phase
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.capacity)}
		stays, err := claimStays(cr, claim, []*corev1.PersistentVolume{own})
		if stays != c.stays || (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: stays %t, %v", name, stays, err)
		}
	}
}
