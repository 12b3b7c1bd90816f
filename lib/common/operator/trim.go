package operator

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
)

// CachedByLabel are the kinds of which an operator's cache has only Asterism's objects: the pods
// of all programs of a cluster would need much memory.
func CachedByLabel() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "asterism"})},
	}
}

// maxLabels bounds the labels that are kept although nobody may read them, in bytes: of an
// object with more, only labels with the names of read are kept.
const maxLabels = 4 << 10

// maxFields bounds the managedFields of an object, in bytes: an operator's child has less.
const maxFields = 64 << 10

// entryBytes is about the memory of one entry of managedFields, beside its texts.
const entryBytes = 128

// read are the beginnings of the names of annotations that operators read.
var read = []string{"asterism.dev/", "k8s.v1.cni.cncf.io/", "meta.helm.sh/", "csi.openshift.io/"}

// wellKnown are the beginnings of further names of labels.
var wellKnown = []string{"app.kubernetes.io/", "batch.kubernetes.io/", "kubernetes.io/", "pod-security.kubernetes.io/"}

// Trim is the transform of an operator's cache. It removes unused data from an object, of
// which everybody who may write one object of a watched kind can add much: annotations that
// no operator reads, labels if they are long, and fields in managedFields, which are half of
// a small object. The fields of server-side apply stay, because the engine detects drift by
// them, and the names of the managers, because messages name them.
func Trim(cached any) (any, error) {
	obj, ok := cached.(metav1.Object)
	if !ok {
		return cached, nil
	}
	obj.SetManagedFields(trimFields(obj.GetManagedFields()))
	obj.SetAnnotations(begin(obj.GetAnnotations(), read))
	if size(obj.GetLabels()) > maxLabels {
		engine.Dropped(engine.BoundLabels)
		obj.SetLabels(begin(obj.GetLabels(), append(wellKnown, read...)))
	}
	return cached, nil
}

// trimFields returns the managers with the fields of server-side apply, up to maxFields.
func trimFields(all []metav1.ManagedFieldsEntry) (entries []metav1.ManagedFieldsEntry) {
	left := maxFields
	for _, entry := range all {
		kept := metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource}
		if left -= entryBytes + len(kept.Manager); left < 0 {
			engine.Dropped(engine.BoundManagedFields)
			break
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			if fields := len(entry.FieldsV1.GetRawBytes()); fields <= left {
				kept.FieldsV1 = entry.FieldsV1
				left -= fields
			} else {
				engine.Dropped(engine.BoundManagedFields)
			}
		}
		entries = append(entries, kept)
	}
	return entries
}

// begin returns the entries whose names begin with one of the texts.
func begin(all map[string]string, with []string) map[string]string {
	maps.DeleteFunc(all, func(name, _ string) bool {
		return !slices.ContainsFunc(with, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
	})
	return all
}

func size(all map[string]string) (bytes int) {
	for name, value := range all {
		bytes += len(name) + len(value)
	}
	return bytes
}
