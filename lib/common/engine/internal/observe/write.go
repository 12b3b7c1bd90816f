package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerFor is how long the API server's answer to a write stands for the object
// while the watch is behind. After that the object is read, because a watch that is
// cut off may miss the object's end.
const answerFor = 2 * time.Second

// write is the controller's own last write of an object, until the watch has shown
// that version, or a later one.
type write struct {
	version string        // that the write has made; for a deletion the version that was deleted
	answer  client.Object // as the API server answered; nil: not known
	created bool
	deleted bool
	at      time.Time
}

// isAhead says whether the write is newer than what a watch shows; nil for
// nothing.
func (w write) isAhead(shown client.Object) bool {
	switch {
	case shown == nil: // a deletion, unless the watch has not even shown the creation
		return !w.deleted || w.created
	case w.deleted && shown.GetResourceVersion() == w.version: // removing the last finalizer makes no version
		return shown.GetDeletionTimestamp() == nil || len(shown.GetFinalizers()) > len(w.answer.GetFinalizers())
	}
	return isOlder(shown.GetResourceVersion(), w.version)
}

func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
