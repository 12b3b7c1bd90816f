package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// logFolder returns the folder with the logs of all containers of the suite's time. The
// kubelet removes its own logs with the pod.
func logFolder() string { return filepath.Join(stateFolder(), "e2e-logs") }

// collectLogs follows the log of every container in the watched namespaces, and stores
// every Secret, until the suite ends.
func collectLogs() {
	GinkgoHelper()
	Expect(os.RemoveAll(logFolder())).To(Succeed())
	Expect(os.MkdirAll(logFolder(), 0o700)).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	logs.following.Go(func() { logs.watch(ctx) })
	logs.following.Go(func() { collected.follow(ctx) })
	DeferCleanup(func() {
		stop()
		logs.following.Wait()
	})
}

type collector struct {
	mu        sync.Mutex
	seen      map[string]bool
	failed    []string // logs that could not be read, except of deleted pods
	gone      []string // logs of pods that were deleted before they could be read
	following sync.WaitGroup
}

// logs is the collector of the whole suite.
var logs = &collector{seen: map[string]bool{}}

func (c *collector) fail(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, fmt.Sprintf("%s: %v", name, err))
}

func (c *collector) failures() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.failed)
}

func (c *collector) watch(ctx context.Context) {
	for ctx.Err() == nil {
		pods, err := k8s.Watch(ctx, &corev1.PodList{})
		if err != nil {
			continue
		}
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && watched(pod.Namespace) {
				c.followContainers(ctx, pod)
			}
		}
	}
}

// followContainers follows the log of each run of a pod's containers.
func (c *collector) followContainers(ctx context.Context, pod *corev1.Pod) {
	for _, status := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		if last := status.LastTerminationState.Terminated; last != nil {
			c.follow(ctx, pod, status.Name, last.ContainerID, true)
		}
		if status.State.Running != nil || status.State.Terminated != nil {
			c.follow(ctx, pod, status.Name, status.ContainerID, false)
		}
	}
}

func (c *collector) follow(ctx context.Context, pod *corev1.Pod, container, run string, previous bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[run] || run == "" {
		return
	}
	c.seen[run] = true
	c.following.Go(func() {
		name := pod.Namespace + "_" + pod.Name + "_" + container
		stream, err := typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous, Follow: !previous}).Stream(ctx)
		if ctx.Err() != nil {
			return
		}
		if apierrors.IsNotFound(err) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.gone = append(c.gone, name)
			return
		}
		if err != nil {
			c.fail(name, err)
			return
		}
		defer func() { _ = stream.Close() }()
		file, err := os.OpenFile(filepath.Join(logFolder(), name+"_"+filepath.Base(run)[:8]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			c.fail(name, err)
			return
		}
		defer func() { _ = file.Close() }()
		if _, err := io.Copy(file, stream); err != nil && ctx.Err() == nil {
			c.fail(name, err)
		}
	})
}

// podsOf lists the pods of a namespace with labels.
func podsOf(ctx context.Context, namespace string, labels map[string]string) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(k8s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(labels))).To(Succeed())
	return pods.Items
}

// logsOf returns the logs of a container in the demo's pods with labels, from a time on.
func logsOf(ctx context.Context, labels map[string]string, container string, since time.Time) string {
	GinkgoHelper()
	var all string
	for _, pod := range podsOf(ctx, demoNamespace, labels) {
		seconds := int64(time.Since(since).Seconds()) + 1
		out, err := typed.CoreV1().Pods(demoNamespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, SinceSeconds: &seconds}).DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		all += string(out)
	}
	return all
}
