package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/mask"
	"asterism.dev/cli/tree"
)

// effective is the file in which the init container of a pod lists the options that are set.
const effective = "/etc/nova/nova.conf.effective"

func newConfig(env *environment) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the configuration of a service, and the effect of a snippet."}
	cmd.AddCommand(newConfigView(env), newConfigDiff(env))
	return cmd
}

func newConfigView(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view POD | KIND/NAME",
		Short: "Show the options that a running service reads, with the file of each.",
		Long: `Show every option that is set in a running pod, its value, and the file from which the
service reads it: 10-defaults.conf of the operator, 50-connections.conf from Secrets,
90-custom.conf of customServiceConfig. Overridden values are comments. Secrets are
masked in the pod. Of KIND/NAME, the newest pod that runs is read.`,
		Example: `  kubectl asterism config view demo-scheduler-0 -n openstack
  kubectl asterism config view novaapi/demo-api -n openstack
  kubectl asterism config view novaapi/demo-api -n openstack -o json`,
		Args: cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		printer, err := output.printer()
		if err != nil {
			return err
		}
		text, err := env.effectiveConfiguration(cmd.Context(), arguments[0])
		if err != nil {
			return err
		}
		if printer != nil {
			return printDocument(env.Out, printer, "OptionList", optionsOf(text))
		}
		_, err = fmt.Fprint(env.Out, text)
		return err
	}
	return cmd
}

// effectiveConfiguration reads the file of the pod that the word names.
func (env *environment) effectiveConfiguration(ctx context.Context, word string) (string, error) {
	access, err := env.connect()
	if err != nil {
		return "", err
	}
	pod, err := podOf(ctx, access, word)
	if err != nil {
		return "", err
	}
	return env.inPod(ctx, access, pod, nil, "cat", effective)
}

// inPod runs a command in the container of the service, and masks its output.
func (env *environment) inPod(ctx context.Context, access *cluster.Cluster, pod *corev1.Pod, stdin io.Reader, command ...string) (string, error) {
	container := cmp.Or(pod.Annotations["kubectl.kubernetes.io/default-container"], pod.Spec.Containers[0].Name)
	if err := checkRuns(pod, container); err != nil {
		return "", err
	}
	if stdin == nil {
		env.hint("Pod %s, container %s, %s:", pod.Name, container, effective)
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	text, err := access.Output(ctx, name, container, stdin, command...)
	if err != nil {
		return "", fmt.Errorf("%s of Pod %s cannot be read: %w: name a pod of a service of Nova, and check that you may create pods/exec", effective, pod.Name, err)
	}
	// The pod has masked the secrets. A second mask costs nothing.
	return mask.New().Text(string(text)), nil
}

// checkRuns returns an error if the container, whose files are to be read, does not run.
func checkRuns(pod *corev1.Pod, container string) error {
	if !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.State.Running == nil
	}) {
		return nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	trouble := tree.TroubleOf(&unstructured.Unstructured{Object: object})
	text := fmt.Sprintf("container %s of Pod %s does not run, and its files can be read only while it runs: %s", container, pod.Name, mask.New().Text(trouble.Text))
	if trouble.Logged {
		text += fmt.Sprintf(": see \"kubectl logs -n %s %s -c %s", pod.Namespace, pod.Name, trouble.Container)
		if trouble.Previous {
			text += " --previous"
		}
		text += `"`
	}
	return errors.New(text)
}

// podOf returns the pod that a word names, or the newest running pod of KIND/NAME.
func podOf(ctx context.Context, access *cluster.Cluster, word string) (*corev1.Pod, error) {
	kindWord, name, isReference := strings.Cut(word, "/")
	if !isReference {
		kindWord, name = "pod", word
	}
	kind, err := cluster.KindOf(kindWord)
	if err != nil {
		return nil, err
	}
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(kind)
	if err := access.Get(ctx, types.NamespacedName{Namespace: access.Namespace, Name: name}, owner); err != nil {
		return nil, fmt.Errorf("%s %s in namespace %s: %w", kind.Kind, name, access.Namespace, err)
	}
	if kind == cluster.Pod {
		pod := &corev1.Pod{}
		return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(owner.Object, pod)
	}
	selector, err := selectorOf(owner)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := access.WithWatch.List(ctx, &list, client.InNamespace(access.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("pods of %s %s cannot be listed: %w", kind.Kind, name, err)
	}
	running := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || isOfJob(p)
	})
	if len(running) == 0 {
		return nil, fmt.Errorf("%s %s has no running pod: see \"kubectl asterism status %s/%s\"", kind.Kind, name, strings.ToLower(kind.Kind), name)
	}
	newest := slices.MaxFunc(running, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest, nil
}

// selectorOf returns the selector of the pods of a workload, or of a kind with the scale
// subresource.
func selectorOf(owner *unstructured.Unstructured) (labels.Selector, error) {
	if text, _, _ := unstructured.NestedString(owner.Object, "status", "selector"); text != "" {
		return labels.Parse(text)
	}
	fields, found, _ := unstructured.NestedMap(owner.Object, "spec", "selector")
	if !found {
		return nil, fmt.Errorf("%s %s has no pods of its own: name one of its services, such as novaapi/NAME", owner.GetKind(), owner.GetName())
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}

func isOfJob(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
}
