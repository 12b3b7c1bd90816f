package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventServer has events by name.
type eventServer struct {
	client.Client
	mu     sync.Mutex
	events map[string]*eventsv1.Event
}

func (s *eventServer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[obj.GetName()] = obj.(*eventsv1.Event) //nolint:forcetypeassert // a recorder writes nothing else
	return nil
}

func (s *eventServer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	event, ok := s.events[obj.GetName()]
	if !ok {
		return errors.NewNotFound(schema.GroupResource{Resource: "events"}, obj.GetName())
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, event)
}

// told is how often each note was told, over all events.
func (s *eventServer) told() map[string][]int {
	told := map[string][]int{}
	for _, event := range s.events {
		count := 1
		if event.Series != nil {
			count = int(event.Series.Count)
		}
		told[event.Note] = append(told[event.Note], count)
	}
	return told
}

// tell records one event about an object, and writes it.
func tell(r *recorder, uid types.UID, version, note string) {
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "cloud", Name: "one", UID: uid, ResourceVersion: version}}
	r.record(about, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, "Normal", "Ready", "Deployed", note)
	r.write(context.Background(), <-r.queue)
}

func TestEqualEventsBecomeOne(t *testing.T) {
	g := NewWithT(t)
	server := &eventServer{events: map[string]*eventsv1.Event{}}
	r := newRecorder(server, "widget")
	tell(r, "1", "100", "up")
	tell(r, "1", "200", "down")
	tell(r, "1", "300", "up")
	tell(r, "1", "400", "up")
	tell(r, "2", "100", "up")
	g.Expect(server.told()).To(HaveKeyWithValue("up", ConsistOf(3, 1)))
	g.Expect(server.told()).To(HaveKeyWithValue("down", ConsistOf(1)))

	clear(server.events) // they expire after an hour
	tell(r, "1", "500", "up")
	g.Expect(server.told()).To(Equal(map[string][]int{"up": {1}}))
}

func TestEventsAreBounded(t *testing.T) {
	g := NewWithT(t)
	r := newRecorder(&eventServer{events: map[string]*eventsv1.Event{}}, "widget")
	for i := range 2 * eventsRecent {
		tell(r, types.UID(fmt.Sprint(i)), "1", "up")
	}
	g.Expect(r.recent.Len()).To(Equal(eventsRecent))
	for range 2 * eventsQueued { // nobody writes them
		r.record(&metav1.PartialObjectMetadata{}, schema.GroupVersionKind{}, "Normal", "Ready", "Deployed", "up")
	}
	g.Expect(r.queue).To(HaveLen(eventsQueued))
}

// TestEventsComeAtAPace so that a thousand objects at once are reconciled first.
func TestEventsComeAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := &eventServer{events: map[string]*eventsv1.Event{}}
		r := newRecorder(server, "widget")
		go func() { _ = r.Start(t.Context()) }()
		const all = eventBurst + 10*eventRate
		for i := range all {
			about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", i), UID: types.UID(fmt.Sprint(i))}}
			r.record(about, schema.GroupVersionKind{}, "Normal", "Ready", "Deployed", "up")
		}
		written := func() int {
			synctest.Wait()
			server.mu.Lock()
			defer server.mu.Unlock()
			return len(server.events)
		}
		g.Expect(written()).To(Equal(eventBurst))
		time.Sleep(5 * time.Second) //nolint:forbidigo // of a clock that does not wait
		g.Expect(written()).To(BeNumerically("~", eventBurst+5*eventRate, 1))
		time.Sleep(5 * time.Second) //nolint:forbidigo // of a clock that does not wait
		g.Expect(written()).To(BeNumerically("~", all, 1))
	})
}

func TestEventsAreValid(t *testing.T) {
	g := NewWithT(t)
	server := &eventServer{events: map[string]*eventsv1.Event{}}
	tell(newRecorder(server, "widget"), "1", "100", "up")
	for _, event := range server.events {
		g.Expect(event.ReportingInstance).To(HavePrefix("widget-"))
		g.Expect(event.Regarding.String()).To(ContainSubstring("Kind:Widget,Namespace:cloud,Name:one,UID:1,APIVersion:example.org/v1,ResourceVersion:100"))
	}
	g.Expect(server.events).To(HaveLen(1))
}
