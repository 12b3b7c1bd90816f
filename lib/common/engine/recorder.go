package engine

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// eventRate is how many events are written a second after a burst of eventBurst:
	// writes of objects come first.
	eventRate  = 20
	eventBurst = 30
	// eventsRemembered is how many events are merged with equal ones that follow.
	eventsRemembered = 1000
)

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
