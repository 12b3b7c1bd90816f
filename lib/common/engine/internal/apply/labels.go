package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels and annotations of children, except those that name the owner.
const (
	labelStage       = "asterism.dev/stage"
	labelRunOf       = "asterism.dev/run-of"
	labelLingers     = "asterism.dev/lingers"
	annotationHash   = "asterism.dev/applied-hash"
	annotationResult = "asterism.dev/result"

	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Selector returns the labels that select the pods of one instance of a service. They
// never change, because the selector of a workload is immutable.
func Selector(service, instance string) map[string]string {
	return map[string]string{labelName: service, labelInstance: labelValue(instance)}
}

// labelValue returns the name, or its beginning and a hash if the name is too long for the
// value of a label.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	hash := Hash(name)
	return name[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}

// labels returns the labels of every child and pod. They have no version, because an
// upgrade of the operator must not restart pods.
func (c *Children) labels() map[string]string {
	labels := Selector(c.Name, c.Owner.GetName())
	labels[labelComponent] = strings.ToLower(c.OwnerKind.Kind)
	labels[labelManagedBy] = "asterism"
	labels[labelPartOf] = labelValue(c.Owner.GetName())
	if partOf := c.Owner.GetLabels()[labelPartOf]; partOf != "" {
		labels[labelPartOf] = partOf
	}
	return labels
}
