package apply

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/lib/common/engine/internal/observe"
)

// restoresAtOnce is the number of times that a child is restored without a pause after other
// clients have changed it.
const restoresAtOnce = 10

// Fights remembers the children that other clients change. A controller that forces its value, as
// the engine does, would otherwise start a write of the engine with each of its own.
type Fights struct {
	every time.Duration // between two restorations, after the first ones
	mu    sync.Mutex
	known map[types.UID]map[observe.Key]fight // by owner
}

type fight struct {
	hash   string    // of the child: another child is no restoration
	until  time.Time // grows by every with each restoration
	others string    // field managers
}

// NewFights returns an empty memory, for one controller.
func NewFights(every time.Duration) *Fights {
	return &Fights{every: every, known: map[types.UID]map[observe.Key]fight{}}
}

// note records that a child was written although it existed.
func (f *Fights) note(owner types.UID, key observe.Key, hash, others string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[owner][key]
	if now := time.Now(); known.hash != hash || known.until.Before(now) {
		known = fight{hash: hash, until: now}
	}
	known.until = known.until.Add(f.every)
	known.others = others
	if f.known[owner] == nil {
		f.known[owner] = map[observe.Key]fight{}
	}
	f.known[owner][key] = known
}

// contested returns an outcome while the child is not restored, because it was restored too often.
func (f *Fights) contested(owner types.UID, key observe.Key, hash string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[owner][key]
	left := time.Until(known.until)
	if left < 0 {
		delete(f.known[owner], key)
	}
	pause := left - (restoresAtOnce-1)*f.every
	if known.hash != hash || pause <= 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed again and again: the operator restores it every %s. Its other field managers: %s", key, f.every, known.others)
	return &Outcome{Reason: ReasonWaiting, Message: message, After: pause}
}

// Forget removes the memory of a deleted owner.
func (f *Fights) Forget(owner types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, owner)
}

// Remembered counts the children, so that tests can verify that they are removed.
func (f *Fights) Remembered() (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.known {
		count += len(known)
	}
	return count
}

// managersBeside lists the field managers of an object except one.
func managersBeside(owner string, obj metav1.Object) string {
	var names []string
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != owner && entry.Subresource == "" && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}
	return strings.Join(names, ", ")
}
