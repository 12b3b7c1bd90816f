package observe

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Marks of a child's owner, beside the controller reference where Kubernetes
// allows a reference.
const (
	// LabelOwnerUID is on every child.
	LabelOwnerUID = "asterism.dev/owner-uid"
	// AnnotationOwner is on a child without an owner reference: the owner's
	// namespace, if the owner has a namespace, its name and its UID, separated by
	// slashes.
	AnnotationOwner = "asterism.dev/owner"
)

// OwnerUID of a child: by its controller reference, or, without a reference, by
// the annotation, or else by the label. Names prove nothing. "" is the owner of
// an object without any of them.
func OwnerUID(child metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(child); controller != nil {
		return controller.UID
	}
	if owner, ok := child.GetAnnotations()[AnnotationOwner]; ok {
		return types.UID(owner[strings.LastIndex(owner, "/")+1:])
	}
	return types.UID(child.GetLabels()[LabelOwnerUID])
}
