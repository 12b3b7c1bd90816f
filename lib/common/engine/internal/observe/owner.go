package observe

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Marks of a child's owner, in addition to the controller reference if Kubernetes allows
// one.
const (
	// LabelOwnerUID is a label of every child.
	LabelOwnerUID = "asterism.dev/owner-uid"
	// AnnotationOwner is an annotation of a child without an owner reference. Its value is
	// the owner's namespace, if the owner is namespaced, its name and its UID, separated by
	// slashes.
	AnnotationOwner = "asterism.dev/owner"
)

// OwnerUID returns the owner of a child according to its controller reference, otherwise
// to the annotation, otherwise to the label. Names are not used, because an owner can be
// recreated with the same name. "" means that the object has none of these marks.
func OwnerUID(child metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(child); controller != nil {
		return controller.UID
	}
	if owner, ok := child.GetAnnotations()[AnnotationOwner]; ok {
		return types.UID(owner[strings.LastIndex(owner, "/")+1:])
	}
	return types.UID(child.GetLabels()[LabelOwnerUID])
}
