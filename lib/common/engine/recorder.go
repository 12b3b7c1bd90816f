package engine

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	eventRate    = 20   // how many are written a second, so that what they tell of comes first
	eventBurst   = 30   // unless there are few
	eventsQueued = 1000 // how many may wait
	eventsRecent = 256  // how many are remembered, to be merged with equal ones
	eventTimeout = 10 * time.Second
)

// recorder writes events in the background. client-go's remembers all of the last
// six minutes, 3 KiB each, which cannot be bounded; and it takes equal events about
// two versions of an object for different ones, so that it would never merge ours.
type recorder struct {
	client             client.Client
	reporter, instance string
	queue              chan *eventsv1.Event
	recent             *lru.Cache // series by sameEvent
	pace               *rate.Limiter
	lost               atomic.Int64 // since that was last logged
}

// sameEvent is what events have in common that become one.
type sameEvent struct {
	about                      types.UID
	kind, reason, action, note string
}

// series is an event that was written.
type series struct {
	name  string
	count int32
}

func newRecorder(c client.Client, reporter string) *recorder {
	host, _ := os.Hostname() // nobody acts on it
	return &recorder{
		client: c, reporter: reporter, instance: reporter + "-" + host,
		queue: make(chan *eventsv1.Event, eventsQueued), recent: lru.New(eventsRecent),
		pace: rate.NewLimiter(eventRate, eventBurst),
	}
}

// record never waits: an event that finds the queue full is lost.
func (r *recorder) record(about client.Object, gvk schema.GroupVersionKind, kind, reason, action, note string) {
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), Name: util.GenerateEventName(about.GetName(), now.UnixNano())},
		EventTime:  now, Type: kind, Reason: reason, Action: action, Note: note,
		ReportingController: r.reporter, ReportingInstance: r.instance,
		Regarding: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: about.GetNamespace(), Name: about.GetName(),
			UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
		},
	}
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
	}
	select {
	case r.queue <- event:
	default:
		r.lost.Add(1)
	}
}

// Start writes events, one after the other, until the manager ends.
func (r *recorder) Start(ctx context.Context) error {
	for r.pace.Wait(ctx) == nil {
		select {
		case <-ctx.Done():
			return nil
		case event := <-r.queue:
			r.write(ctx, event)
		}
		if lost := r.lost.Swap(0); lost > 0 {
			log.FromContext(ctx).Info("events were not written: there are too many", "how many", lost)
		}
	}
	return nil
}

// write an event, or that the last one like it has come again.
func (r *recorder) write(ctx context.Context, event *eventsv1.Event) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	same := sameEvent{about: event.Regarding.UID, kind: event.Type, reason: event.Reason, action: event.Action, note: event.Note}
	if known, ok := r.recent.Get(same); ok {
		last := known.(series) //nolint:forcetypeassert // nothing else is put there
		last.count++
		patch := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":%q}}`, last.count, event.EventTime.UTC().Format(metav1.RFC3339Micro))
		written := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: last.name}}
		if r.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, []byte(patch))) == nil {
			r.recent.Add(same, last)
			return
		} // it has expired, as events do
	}
	if err := r.client.Create(ctx, event); err != nil {
		// A namespace that is being deleted takes no events.
		log.FromContext(ctx).Info("an event was not written", "about", event.Regarding.Name, "reason", event.Reason, "why", err.Error())
		return
	}
	r.recent.Add(same, series{name: event.Name, count: 1})
}
