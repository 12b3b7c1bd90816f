package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/mask"
)

// logs is the command logs.
type logs struct {
	*environment
	cluster *cluster.Cluster
	masker  *mask.Masker
	options corev1.PodLogOptions
	since   time.Duration
	all     bool

	writing sync.Mutex // of a line
	unread  atomic.Int32
}

func newLogs(env *environment) *cobra.Command {
	l := &logs{environment: env, masker: mask.New()}
	tail := int64(10)
	cmd := &cobra.Command{
		Use:   "logs [NAME | KIND/NAME]",
		Short: "Show the logs of the pods of an object and of everything below it.",
		Long: `Show the logs of all pods that exist because of a control plane, or of another object of
Asterism, each line with the names of its pod and container. Without an argument, the logs
of all control planes of the namespace are shown. The values of the Secrets that you may
read and texts in the form of a secret are replaced by ***.`,
		Example: `  kubectl asterism logs novacell/demo-cell1 -n openstack
  kubectl asterism logs novaapi/demo-api -n openstack --follow
  kubectl asterism logs demo -n openstack --since 10m --tail -1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.completeObject,
	}
	cmd.Flags().BoolVarP(&l.options.Follow, "follow", "f", false, "Show new lines, until the program is interrupted. Pods that start later are not followed")
	cmd.Flags().BoolVarP(&l.options.Previous, "previous", "p", false, "Show the logs of the containers' previous runs")
	cmd.Flags().BoolVar(&l.options.Timestamps, "timestamps", false, "Show the time of each line")
	cmd.Flags().Int64Var(&tail, "tail", tail, "Lines of each container; -1 for all")
	cmd.Flags().DurationVar(&l.since, "since", 0, "Age of the oldest lines, such as 10m; 0 for all")
	cmd.Flags().BoolVar(&l.all, "all-containers", false, "Also show the init containers that have succeeded, and the ephemeral containers")
	cmd.RunE = func(cmd *cobra.Command, arguments []string) (err error) {
		if tail >= 0 {
			l.options.TailLines = &tail
		}
		if l.since > 0 {
			l.options.SinceSeconds = new(max(1, int64(l.since.Seconds())))
		}
		if l.cluster, err = env.connect(); err != nil {
			return err
		}
		return l.show(cmd.Context(), arguments)
	}
	return cmd
}

// show shows the logs one after the other, or follows all of them at once.
func (l *logs) show(ctx context.Context, arguments []string) error {
	objects, _, err := l.below(ctx, l.cluster, arguments)
	if err != nil {
		return err
	}
	if err := learnSecrets(ctx, l.cluster, l.masker, l.cluster.Namespace); err != nil {
		l.hint("warning: %v", err)
	}
	var following sync.WaitGroup
	found := 0
	for _, o := range objects {
		if o.GroupVersionKind() != cluster.Pod {
			continue
		}
		for _, container := range l.containers(o) {
			found++
			if l.options.Follow {
				following.Go(func() { l.log(ctx, o, container) })
			} else {
				l.log(ctx, o, container)
			}
		}
	}
	following.Wait()
	switch {
	case found == 0:
		return errors.New("no container has a log: see kubectl asterism status")
	case l.unread.Load() > 0:
		return errors.New("not every log could be read")
	}
	return nil
}

// containers returns the names of a pod's containers that have begun to run; by default without
// the init containers that have succeeded, and without ephemeral containers.
func (l *logs) containers(o *unstructured.Unstructured) []string {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &pod); err != nil {
		l.hint("warning: Pod %s cannot be read: %v", o.GetName(), err)
		return nil
	}
	statuses := slices.DeleteFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool {
		return !l.all && status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	})
	statuses = append(statuses, pod.Status.ContainerStatuses...)
	if l.all {
		statuses = append(statuses, pod.Status.EphemeralContainerStatuses...)
	}
	var names []string
	for _, status := range statuses {
		ended := status.LastTerminationState.Terminated != nil
		if ended || !l.options.Previous && status.State.Waiting == nil {
			names = append(names, status.Name)
		}
	}
	return names
}

// log shows the log of one container.
func (l *logs) log(ctx context.Context, pod *unstructured.Unstructured, container string) {
	options := l.options
	options.Container = container
	stream, err := l.cluster.Logs(ctx, client.ObjectKeyFromObject(pod), &options)
	if err == nil {
		err = errors.Join(l.lines(stream, fmt.Sprintf("[%s/%s] ", pod.GetName(), container)), stream.Close())
	}
	if err != nil && ctx.Err() == nil {
		l.unread.Add(1)
		l.hint("warning: the log of container %s of Pod %s cannot be read: %v", container, pod.GetName(), err)
	}
}

// lines writes each line of a log behind its source.
func (l *logs) lines(log io.Reader, source string) error {
	reader := bufio.NewReader(log)
	key := ""
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			line = key + line
			key = mask.OpenKey(line)
			if err := l.line(source + l.masker.Text(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line writes a line, with its end if the log lacks it.
func (l *logs) line(text string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := fmt.Fprintln(l.Out, strings.TrimSuffix(text, "\n"))
	return err
}
