package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// trimmedVolume is a volume as it comes from the watch.
func trimmedVolume(t *testing.T, name string) *corev1.PersistentVolume {
	t.Helper()
	applied := &metav1.FieldsV1{}
	applied.SetRawString(`{"f:spec":{"f:capacity":{}}}`)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: "{}", "kept": "yes",
	}, Labels: map[string]string{"asterism.dev/owner-uid": name}}}
	volume.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: applied, Time: &metav1.Time{Time: time.Now()}},
		{Manager: "them", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: applied},
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: applied},
	}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	cached, err := engine.Trim(volume)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	again, err := engine.Trim(cached) // as a list that is watched does
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return again.(runtime.Object).DeepCopyObject().(*corev1.PersistentVolume) //nolint:forcetypeassert // as it was given
}

func TestTrimKeepsWhatWasApplied(t *testing.T) {
	g := NewWithT(t)
	volume := trimmedVolume(t, "one")
	g.Expect(volume.ManagedFields).To(HaveLen(1))
	g.Expect(volume.ManagedFields[0].Manager).To(Equal("us"))
	g.Expect(volume.ManagedFields[0].FieldsV1.GetRawString()).To(Equal(`{"f:spec":{"f:capacity":{}}}`))
	g.Expect(volume.Annotations).To(Equal(map[string]string{"kept": "yes"}))
	g.Expect(volume.Spec.Capacity.Storage().String()).To(Equal("1Gi"))
}

// TestTrimPacks: what comes out of the cache is what came from the watch.
func TestTrimPacks(t *testing.T) {
	g := NewWithT(t)
	now := metav1.Unix(1, 0)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cloud", Name: "one", UID: "1", ResourceVersion: "2", Generation: 3, CreationTimestamp: now, DeletionTimestamp: &now,
		Finalizers: []string{"a", "b"}, Labels: map[string]string{"c": "d", "e": "f"}, Annotations: map[string]string{"g": "h"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Widget", Name: "one", UID: "4", Controller: new(true)}},
	}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		VolumeName: "volume", StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	claim.Status.Phase = corev1.ClaimBound
	want := claim.DeepCopy()
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Unused", Message: "No pods are currently referencing this PVC"}}
	cached, err := engine.Trim(claim)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		copied := cached.(runtime.Object).DeepCopyObject() //nolint:forcetypeassert // all that is cached is one
		g.Expect(equality.Semantic.DeepEqual(copied, want)).To(BeTrue(), "%+v", copied)
		copied.(*corev1.PersistentVolumeClaim).Labels["c"] = "changed" //nolint:forcetypeassert // as it was given
	}
	seen, err := meta.Accessor(cached) // by indexes and selectors
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.GetLabels()).To(Equal(want.Labels))
	g.Expect(seen.GetOwnerReferences()).To(Equal(want.OwnerReferences))
}

func TestTrimSharesTheWordsOfAStatus(t *testing.T) {
	g := NewWithT(t)
	var words []*byte
	for range 2 {
		var cr widget.Widget
		g.Expect(json.Unmarshal([]byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":""}],"completed":[{"stage":"Registered","inputs":"x"}]}}`), &cr)).To(Succeed())
		before := cr.DeepCopy()
		_, err := engine.Trim(&cr)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cr).To(Equal(*before))
		words = append(words, unsafe.StringData(cr.Status.Conditions[0].Reason), unsafe.StringData(cr.Status.Completed[0].Stage))
	}
	g.Expect(words[0]).To(BeIdenticalTo(words[2]))
	g.Expect(words[1]).To(BeIdenticalTo(words[3]))
}

// TestTrimMakesOwnersAlike: a list of fields covers its owner all the same, and
// does not when the owner was taken out of it.
func TestTrimMakesOwnersAlike(t *testing.T) {
	g := NewWithT(t)
	var kept []*metav1.FieldsV1
	for _, uid := range []string{"c95046ba-8acc-4b4d-9114-c03b7f0a3eb8", "7520b48b-30d2-45e9-84b2-f9f14f312be3"} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"asterism.dev/owner-uid": uid}}}
		claim.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "us", Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"` + uid + `\"}":{}}}}`),
		}}
		cached, err := engine.Trim(claim)
		g.Expect(err).NotTo(HaveOccurred())
		kept = append(kept, cached.(metav1.Object).GetManagedFields()[0].FieldsV1) //nolint:forcetypeassert // all that is cached is one
	}
	g.Expect(kept[0]).To(BeIdenticalTo(kept[1]))
	body := map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "c95046ba", "name": "us"}}}}
	g.Expect(engine.Covers(kept[0].GetRawString(), body)).To(BeTrue())
	g.Expect(engine.Covers(`{"f:metadata":{"f:ownerReferences":{"f:other":{}}}}`, body)).To(BeFalse())
}

// TestTrimSharesTheWordsOfMetadata: a child repeats its owner's name and UID.
func TestTrimSharesTheWordsOfMetadata(t *testing.T) {
	g := NewWithT(t)
	decoded := func(content string, into any) {
		g.Expect(json.Unmarshal([]byte(content), into)).To(Succeed())
		_, err := engine.Trim(into)
		g.Expect(err).NotTo(HaveOccurred())
	}
	var cr widget.Widget
	decoded(`{"metadata":{"name":"one","uid":"c95046ba-8acc-4b4d-9114-c03b7f0a3eb8"}}`, &cr)
	var child corev1.ConfigMap
	decoded(`{"metadata":{"labels":{"instance":"one"},"annotations":{"of":"one"},"finalizers":["protection"],
		"ownerReferences":[{"name":"one","uid":"c95046ba-8acc-4b4d-9114-c03b7f0a3eb8"}]}}`, &child)
	owner := child.OwnerReferences[0]
	for _, repeated := range []string{child.Labels["instance"], child.Annotations["of"], owner.Name} {
		g.Expect(unsafe.StringData(repeated)).To(BeIdenticalTo(unsafe.StringData(cr.Name)))
	}
	g.Expect(unsafe.StringData(string(owner.UID))).To(BeIdenticalTo(unsafe.StringData(string(cr.UID))))
	g.Expect(child.Finalizers).To(Equal([]string{"protection"}))
}

// TestTrimSharesConditions: those that are well since the same second.
func TestTrimSharesConditions(t *testing.T) {
	g := NewWithT(t)
	trimmed := func(status metav1.ConditionStatus, since int64) *metav1.Condition {
		cr := &widget.Widget{}
		cr.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Ready", LastTransitionTime: metav1.Unix(since, 0)}}
		_, err := engine.Trim(cr)
		g.Expect(err).NotTo(HaveOccurred())
		return &cr.Status.Conditions[0]
	}
	g.Expect(trimmed(metav1.ConditionTrue, 1)).To(BeIdenticalTo(trimmed(metav1.ConditionTrue, 1)))
	g.Expect(trimmed(metav1.ConditionTrue, 1)).NotTo(Equal(trimmed(metav1.ConditionTrue, 2)))
	g.Expect(trimmed(metav1.ConditionFalse, 1)).NotTo(BeIdenticalTo(trimmed(metav1.ConditionFalse, 1)), "what is not well soon changes")
}

// TestTrimRemembersLittle: what is different in every object does not displace what
// many have, and is not kept.
func TestTrimRemembersLittle(t *testing.T) {
	g := NewWithT(t)
	var namespaces []*byte
	for i := range 10 * engine.MaxShared {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: strings.Clone("cloud"), Name: fmt.Sprint(i)}}
		_, err := engine.Trim(secret)
		g.Expect(err).NotTo(HaveOccurred())
		namespaces = append(namespaces, unsafe.StringData(secret.Namespace))
	}
	g.Expect(namespaces[0]).To(BeIdenticalTo(namespaces[len(namespaces)-1]))
	g.Expect(engine.Shared()).To(BeNumerically("<=", 2*engine.MaxShared))
}
