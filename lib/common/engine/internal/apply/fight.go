package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/lib/common/engine/internal/observe"
)

// fights remembers the recent writes of children that existed. A controller that forces its
// value, as the engine does, would otherwise start a write of the engine with each of its own.
type fights struct {
	atOnce int           // restorations of a child without a pause, more than a person causes
	every  time.Duration // in which it is then restored
	mu     sync.Mutex
	recent map[types.UID]map[observe.Key]fight // by owner
}

type fight struct {
	hash   string    // of the child: the write of another child restores nothing
	until  time.Time // grows by every with each write
	others string    // field managers
}

func (f *fights) noteRestored(owner types.UID, key observe.Key, hash, others string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, now := f.recent[owner][key], time.Now()
	if last.hash != hash || last.until.Before(now) {
		last.until = now
	}
	if f.recent[owner] == nil {
		f.recent[owner] = map[observe.Key]fight{}
	}
	f.recent[owner][key] = fight{hash: hash, until: last.until.Add(f.every), others: others}
}

func (f *fights) isContested(owner types.UID, key observe.Key, hash string) bool {
	return f.contested(owner, key, hash) != nil
}

// contested returns an outcome while the child is not restored, because it was restored too often.
func (f *fights) contested(owner types.UID, key observe.Key, hash string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.recent[owner][key]
	left := time.Until(last.until)
	if left < 0 {
		delete(f.recent[owner], key)
	}
	pause := left - time.Duration(f.atOnce-1)*f.every
	if last.hash != hash || pause <= 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed again and again: the operator restores it every %s. Its other field managers: %s", key, f.every, cmp.Or(last.others, "none, so look for an admission webhook"))
	return &Outcome{Reason: ReasonWaiting, Message: message, After: pause}
}

// settle removes the memory of a deleted owner.
func (f *fights) settle(owner types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.recent, owner)
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
