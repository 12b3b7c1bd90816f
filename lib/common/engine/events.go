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
	// eventRate is how many events are written a second after a burst of eventBurst:
	// writes of objects come first.
	eventRate  = 20
	eventBurst = 30
	// maxEventNote bounds an event's note, in bytes; the API allows 1024.
	maxEventNote = 1000
	// eventsRemembered is how many events are merged with equal ones that follow.
	eventsRemembered = 1000
)

// announce emits one event that names every condition whose status or reason
// changed in this pass.
func (p *pass) announce() {
	var changes, said []string
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
		if slices.Contains(said, message) { // the summary has the stage's
			message = ""
		}
		said = append(said, message)
		changes = append(changes, strings.TrimSpace(fmt.Sprintf("%s is %s (%s) %s", now.Type, now.Status, now.Reason, message)))
	}
	if len(changes) == 0 {
		return
	}
	kind := corev1.EventTypeNormal
	if p.failure != nil || (p.firstUnready != nil && !healsByItself(p.firstUnready)) {
		kind = corev1.EventTypeWarning
	}
	p.recorder.Event(p.cr, kind, reason, bounded(strings.Join(changes, "; ")))
}

func bounded(note string) string {
	return strings.ToValidUTF8(note[:min(len(note), maxEventNote)], "")
}

// newRecorder writes events in the background, until the manager ends.
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

// ownPod is the pod that the operator runs in, in a namespace that outlives those that
// the operator watches; nil outside of a cluster.
func ownPod() *corev1.ObjectReference {
	namespace := os.Getenv("POD_NAMESPACE")
	name, err := os.Hostname()
	if namespace == "" || err != nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
}

// objectAndReason bounds equal reasons of one object, so that a condition that
// flaps does not silence another reason.
func objectAndReason(event *corev1.Event) string {
	return string(event.InvolvedObject.UID) + event.Type + event.Reason
}
