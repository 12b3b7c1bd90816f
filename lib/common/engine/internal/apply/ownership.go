package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// StageOf returns the stage that has applied a child.
func StageOf(child client.Object) string { return child.GetLabels()[labelStage] }

// IsChild tells whether an object is a child of the owner. An object in another namespace
// is not a child, even with the labels of a child: users with rights in that namespace can
// forge labels.
func (c *Children) IsChild(obj client.Object) bool {
	otherNamespace := c.Owner.GetNamespace() != "" && obj.GetNamespace() != "" && obj.GetNamespace() != c.Owner.GetNamespace()
	return !otherNamespace && observe.OwnerUID(obj) == c.Owner.GetUID() && (c.Proof == nil || c.Proof(obj))
}

// mayOwn tells whether Kubernetes allows an owner reference: not across namespaces, and not
// from a cluster-scoped child to a namespaced owner.
func (c *Children) mayOwn(child observe.Key) bool {
	return c.Owner.GetNamespace() == "" || c.Owner.GetNamespace() == child.Namespace
}

func (c *Children) ownerAnnotation() string {
	owner := c.Owner.GetName() + "/" + string(c.Owner.GetUID())
	if c.Owner.GetNamespace() != "" {
		owner = c.Owner.GetNamespace() + "/" + owner
	}
	return owner
}

// ForeignOutcome is the outcome if an object with a child's name is not a child.
func ForeignOutcome(key observe.Key, current client.Object) error {
	return &Outcome{Reason: ReasonConflict, Message: fmt.Sprintf("%s exists and %s: delete it, or choose another name", key, DescribeOwner(current))}
}

// DescribeOwner describes the owner of a foreign object.
func DescribeOwner(obj metav1.Object) string {
	if controller := metav1.GetControllerOf(obj); controller != nil {
		return fmt.Sprintf("belongs to %s %s", controller.Kind, controller.Name)
	}
	if obj.GetLabels()[observe.LabelOwnerUID] != "" {
		return "belongs to another or a former owner, instance " + obj.GetLabels()[labelInstance]
	}
	return "was not created by this operator"
}
