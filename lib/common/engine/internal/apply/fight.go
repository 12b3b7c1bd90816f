package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noteRestored moves the time until which the restorations of a child are paid by RestoreEvery: a
// child that is restored too often at once, see Limits, waits for this time.
func (c *Children) noteRestored(want stampedChild, before metav1.Object) {
	last, now := c.Memory.fights[want.key], time.Now()
	if last.hash != want.hash || last.until.Before(now) {
		last.until = now
	}
	c.Memory.fights[want.key] = fight{hash: want.hash, until: last.until.Add(c.RestoreEvery), others: managersBeside(c.Name, before)}
}

// contested returns an outcome while the child is not restored, because it was restored too often.
func (c *Children) contested(want stampedChild) error {
	last := c.Memory.fights[want.key]
	left := time.Until(last.until)
	if left < 0 {
		delete(c.Memory.fights, want.key)
	}
	pause := left - time.Duration(c.RestoresAtOnce-1)*c.RestoreEvery
	if last.hash != want.hash || pause <= 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed again and again: the operator restores it every %s. Its other field managers: %s", want.key, c.RestoreEvery, cmp.Or(last.others, "none, so look for an admission webhook"))
	return &Outcome{Reason: ReasonWaiting, Message: message, After: pause}
}

// managersBeside lists the field managers of an object except one.
func managersBeside(owner string, obj metav1.Object) string {
	var names []string
	for _, entry := range obj.GetManagedFields() {
		isOurs := entry.Manager == owner || strings.HasPrefix(entry.Manager, owner+"-") || strings.HasSuffix(entry.Manager, "-finalizer")
		if !isOurs && entry.Subresource == "" && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}
	return strings.Join(names, ", ")
}
