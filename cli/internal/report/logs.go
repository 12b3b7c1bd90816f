package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tail is the maximum number of lines of one log.
const tail = 50000

var errFull = errors.New("the logs have reached --max-size: set a larger --max-size or a shorter --since")

// podLogs adds the logs of the operators, and of the pods that the operators have created.
// Other pods of the namespace are not Asterism's to show.
func (r *collection) podLogs(ctx context.Context, namespace string) {
	var pods corev1.PodList
	if err := r.cluster.WithWatch.List(ctx, &pods, inNamespace(namespace)); err != nil {
		return // objects has reported this error
	}
	for _, pod := range pods.Items {
		if !slices.Contains(r.Operators, namespace) && pod.Labels["app.kubernetes.io/managed-by"] != "asterism" {
			continue
		}
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if status.State.Waiting == nil {
				r.log(ctx, pod, status.Name, false)
			}
			if status.LastTerminationState.Terminated != nil {
				r.log(ctx, pod, status.Name, true)
			}
		}
	}
}

// log adds the log of the current or of the previous run of a container.
func (r *collection) log(ctx context.Context, pod corev1.Pod, container string, previous bool) {
	run := "current"
	if previous {
		run = "previous"
	}
	what := fmt.Sprintf("the %s log of container %s of Pod %s in namespace %s", run, container, pod.Name, pod.Namespace)
	bound := min(r.MaxLogSize, r.MaxSize-r.logs)
	if bound <= 0 {
		r.miss(what, errFull)
		return
	}
	options := &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true,
		LimitBytes: &bound, TailLines: new(int64(tail)), SinceSeconds: new(max(1, int64(r.Since.Seconds()))),
	}
	content, err := r.cluster.Log(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, options)
	if err != nil {
		r.miss(what, err)
		return
	}
	r.logs += int64(len(content))
	if int64(len(content)) >= bound {
		content = wholeLines(content) // a part of a secret would not be recognized
	}
	r.archive.add(file(pod.Namespace, "pods", pod.Name, container, container, "logs", run+".log"), []byte(r.masker.Text(string(content))))
}

// wholeLines removes the last line if it is not complete.
func wholeLines(content []byte) []byte {
	return content[:bytes.LastIndexByte(content, '\n')+1]
}
