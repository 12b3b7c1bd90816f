package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

const (
	// eventRate is the maximum of events per second after a burst of eventBurst, so that
	// events do not delay writes of objects.
	eventRate  = 20
	eventBurst = 30
	// maxEventNote bounds an event's note, in bytes; the API allows 1024.
	maxEventNote = 1000
	// eventsRemembered is the number of events that equal later events are merged with.
	eventsRemembered = 1000
)

// announce records one event that names every condition whose status or reason has changed
// in this pass.
func (p *pass) announce() {
	var changes, messages []string
	reason := "Reconciled"
	for _, now := range p.cr.Common().Conditions {
		if now.Type == commonv1.ConditionReady {
			reason = now.Reason
		}
		was := meta.FindStatusCondition(p.before.Conditions, now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason || was == nil && now.Reason == ReasonNotReached {
			continue
		}
		message := now.Message
		if slices.Contains(messages, message) { // Ready repeats the message of a stage
			message = ""
		}
		messages = append(messages, message)
		changes = append(changes, strings.TrimSpace(fmt.Sprintf("%s is %s (%s) %s", now.Type, now.Status, now.Reason, message)))
	}
	if len(changes) == 0 {
		return
	}
	kind := corev1.EventTypeNormal
	if p.failure != nil || p.warns || (p.firstUnready != nil && !resolvesItself(p.firstUnready)) {
		kind = corev1.EventTypeWarning
	}
	p.recorder.Event(p.cr, kind, reason, bounded(strings.Join(changes, "; ")))
}

func bounded(note string) string {
	if len(note) > maxEventNote {
		Dropped(BoundEventNote)
	}
	return strings.ToValidUTF8(note[:min(len(note), maxEventNote)], "")
}

// newRecorder returns a recorder that writes events in the background, until the manager
// ends.
func newRecorder(mgr ctrl.Manager, name string) (record.EventRecorder, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = eventRate, eventBurst
	client, err := typedcorev1.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: eventsRemembered, SpamKeyFunc: objectAndReason}))
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { // once it leads
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
		<-ctx.Done()
		return nil
	}))
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), err
}

// ownPod returns the pod of the operator, whose namespace outlives the watched namespaces;
// nil outside a cluster.
func ownPod() *corev1.ObjectReference {
	namespace := os.Getenv("POD_NAMESPACE")
	name, err := os.Hostname()
	if namespace == "" || err != nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
}

// objectAndReason is the key by which events are limited: a condition that changes often
// must not suppress events with another reason.
func objectAndReason(event *corev1.Event) string {
	return string(event.InvolvedObject.UID) + event.Type + event.Reason
}
