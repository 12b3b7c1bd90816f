package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrimKeepsWhatWasAppliedAndEveryManager(t *testing.T) {
	g := NewWithT(t)
	fields := &metav1.FieldsV1{}
	fields.SetRawString(`{"f:spec":{"f:capacity":{}}}`)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.org/x": "y", "asterism.dev/owner": "yes"}}}
	volume.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "operator", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields, Time: &metav1.Time{Time: time.Now()}},
		{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields},
		{Manager: "operator", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: fields},
	}
	for range 2 { // a list that is watched is trimmed twice
		_, err := Trim(volume)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(volume.ManagedFields).To(Equal([]metav1.ManagedFieldsEntry{
			{Manager: "operator", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields},
			{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate},
			{Manager: "operator", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
		}))
		g.Expect(volume.Annotations).To(Equal(map[string]string{"asterism.dev/owner": "yes"}))
	}
}

// TestTrimDropsWhatOthersAdd: anybody who may write one object decides what it has.
func TestTrimDropsWhatOthersAdd(t *testing.T) {
	g := NewWithT(t)
	fields := &metav1.FieldsV1{}
	fields.SetRawString(`{"f:` + strings.Repeat("x", maxFields) + `":{}}`)
	account := &corev1.ServiceAccount{}
	account.Annotations = map[string]string{"example.org/x": strings.Repeat("x", 250<<10)}
	account.Labels = map[string]string{"app.kubernetes.io/name": "kept"}
	for i := range 1000 {
		account.Labels[fmt.Sprint("example.org/", i)] = "x"
	}
	account.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
	_, err := Trim(account)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(account.Annotations).To(BeEmpty())
	g.Expect(account.Labels).To(Equal(map[string]string{"app.kubernetes.io/name": "kept"}))
	g.Expect(account.ManagedFields).To(Equal([]metav1.ManagedFieldsEntry{{Manager: "other", Operation: metav1.ManagedFieldsOperationApply}}))
}

// TestTrimBoundsAllManagers: the number of managers that apply an object has no limit.
func TestTrimBoundsAllManagers(t *testing.T) {
	g := NewWithT(t)
	fields := &metav1.FieldsV1{}
	fields.SetRawString(`{"f:` + strings.Repeat("x", maxFields/4) + `":{}}`)
	claim := &corev1.PersistentVolumeClaim{}
	for i := range 5000 {
		claim.ManagedFields = append(claim.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprint("manager-", i), Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields,
		})
	}
	_, err := Trim(claim)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(claim.ManagedFields)).To(And(BeNumerically(">", 50), BeNumerically("<", maxFields/entryBytes)))
	whole := 0
	for _, entry := range claim.ManagedFields {
		if entry.FieldsV1 != nil {
			whole++
		}
	}
	g.Expect(whole).To(Equal(3))
}
