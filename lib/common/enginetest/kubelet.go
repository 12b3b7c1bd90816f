package enginetest

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Kubelet simulates the kubelet of a control plane without nodes: it reports pods as running
// and ready, and pods of Jobs as ended.
type Kubelet struct {
	// Job returns the exit code and the termination message of a Job's pod; nil: 0 and no
	// message. After a negative exit code, the pod stays pending, and Job is called again.
	Job func(*corev1.Pod) (exitCode int32, message string)
	// Ready is called until it returns true: then the pod becomes ready; nil: at once.
	Ready func(*corev1.Pod) bool
}

// Start starts the simulation for the pods of one namespace, until the test ends.
func (k Kubelet) Start(t testing.TB, namespace string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(Config(t))
	if err != nil {
		t.Fatal(err)
	}
	// Before the namespace has a ServiceAccount, pods are refused, and their controllers
	// retry late.
	Eventually(t, "the namespace has a service account", func() error {
		_, err := clients.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		return err
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := k.follow(ctx, clients.CoreV1().Pods(namespace)); err != nil && ctx.Err() == nil {
				t.Errorf("watching pods: %v", err)
				return
			}
		}
	}()
}

// follow processes one watch to its end. Pods that stay pending are processed repeatedly.
func (k Kubelet) follow(ctx context.Context, pods typedcorev1.PodInterface) error {
	w, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	held := map[types.UID]*corev1.Pod{}
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			delete(held, pod.UID)
			if event.Type != watch.Deleted && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
				held[pod.UID] = pod
			}
		case <-again.C:
		}
		for uid, pod := range held {
			played := pod.DeepCopy()
			if !k.play(played) {
				continue
			}
			// If the pod was deleted or changed, another event follows.
			_, err := pods.UpdateStatus(ctx, played, metav1.UpdateOptions{})
			if err == nil || errors.IsConflict(err) || errors.IsNotFound(err) {
				delete(held, uid)
			}
		}
	}
}

// play sets the status of a pending pod; it returns false if the pod stays pending.
func (k Kubelet) play(pod *corev1.Pod) bool {
	if pod.Labels[batchv1.JobNameLabel] != "" {
		return k.end(pod)
	}
	if k.Ready != nil && !k.Ready(pod) {
		return false
	}
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &now
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Ready: true, Started: new(true), Image: container.Image,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return true
}

func (k Kubelet) end(pod *corev1.Pod) bool {
	var code int32
	var message string
	if k.Job != nil {
		code, message = k.Job(pod)
	}
	if code < 0 {
		return false
	}
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	now := metav1.Now()
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Message: message, StartedAt: now, FinishedAt: now, ContainerID: "played://" + string(pod.UID),
			}},
		})
	}
	return true
}
