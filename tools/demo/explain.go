package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
	"asterism.dev/tools/internal/process"
)

const logLines = 15

// explain adds the state, the warnings and the logs in the cluster to a failure.
func (d *demo) explain(ctx context.Context, failure error) error {
	missing := &notReadyError{}
	if ctx.Err() != nil || d.kube == nil || !errors.As(failure, &missing) {
		return failure
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	objects, err := d.kube.allObjects(ctx)
	if err != nil {
		return fmt.Errorf("%w\nand the cause cannot be read from the cluster: %w", failure, err)
	}
	all := tree.New(objects)
	sections := []string{failure.Error()}
	if root := find(all, missing.object.kind.Kind, missing.object.name); root != nil {
		path := pathOf(all, root)
		sections = append(sections, "Objects that are not ready:\n"+indent(textOf(path)))
		sections = append(sections, d.evidence(ctx, all, leafOf(path))...)
		sections = append(sections, d.further(leafOf(path)))
	}
	return errors.New(strings.Join(sections, "\n\n"))
}

// evidence returns the warnings about an object and the log that explains its state.
func (d *demo) evidence(ctx context.Context, all *tree.Forest, leaf *unstructured.Unstructured) []string {
	var found []string
	if warnings := d.kube.warnings(ctx, leaf); warnings != "" {
		found = append(found, fmt.Sprintf("Warnings about %s/%s:\n%s", leaf.GetKind(), leaf.GetName(), indent(warnings)))
	}
	switch {
	case leaf.GetKind() == cluster.Pod.Kind:
		if trouble := tree.TroubleOf(leaf); trouble.Logged {
			found = append(found, d.kube.logOf(ctx, leaf, trouble.Container, trouble.Previous, ""))
		}
	case tree.IsOwn(leaf) && !isStalled(pathOf(all, leaf)): // the condition of a stalled object is enough
		found = append(found, d.operatorEvidence(ctx, all, leaf)...)
	}
	return found
}

// operatorEvidence returns the operator's log lines about the object, or the reason why
// the operator is not ready.
func (d *demo) operatorEvidence(ctx context.Context, all *tree.Forest, o *unstructured.Unstructured) []string {
	name, err := d.operatorOf(o.GetKind())
	if err != nil {
		return []string{err.Error()}
	}
	deployment := find(all, cluster.Deployment.Kind, operatorDeployment(name).name)
	if deployment == nil {
		return nil
	}
	if path := all.Path(deployment); len(path) > 0 {
		return append([]string{"The operator of " + o.GetKind() + "/" + o.GetName() + " is not ready:\n" + indent(textOf(path))}, d.evidence(ctx, all, leafOf(path))...)
	}
	var logs []string
	for _, set := range all.Children(deployment) {
		for _, pod := range all.Children(set) {
			logs = append(logs, d.kube.logOf(ctx, pod, "operator", false, o.GetName()))
		}
	}
	return logs
}

// warnings returns the last three events of type Warning about the object.
func (k *kube) warnings(ctx context.Context, o *unstructured.Unstructured) string {
	events, err := k.List(ctx, o.GetNamespace(), cluster.Event)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, event := range events {
		field := func(path ...string) string {
			text, _, _ := unstructured.NestedString(event.Object, path...)
			return text
		}
		if field("type") == corev1.EventTypeWarning && field("involvedObject", "uid") == string(o.GetUID()) {
			lines = append(lines, fmt.Sprintf("%s: %s", field("reason"), strings.TrimSpace(field("message"))))
		}
	}
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// logOf returns the last lines of a container's log, only those with a name if any has it.
func (k *kube) logOf(ctx context.Context, pod *unstructured.Unstructured, container string, previous bool, about string) string {
	lines := int64(2000)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}
	content, err := k.Log(ctx, client.ObjectKeyFromObject(pod), options)
	title := fmt.Sprintf("Last lines of container %s of Pod/%s", container, pod.GetName())
	if previous {
		title += ", its previous run"
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", title, err)
	}
	return title + ":\n" + indent(process.LastLines(linesAbout(string(content), about), logLines))
}

// linesAbout returns the lines that contain a word, or the whole log if none does.
func linesAbout(log, word string) string {
	var kept []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, word) {
			kept = append(kept, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(kept) == 0 {
		return log
	}
	return strings.Join(kept, "\n")
}

// further lists commands that show more.
func (d *demo) further(leaf *unstructured.Unstructured) string {
	var lines []string
	if !d.existing {
		lines = append(lines, ". "+d.short(d.dir)+"/env")
	}
	target := fmt.Sprintf("%s/%s", strings.ToLower(leaf.GetKind()), leaf.GetName())
	lines = append(lines,
		"kubectl get openstack,pods --namespace "+namespace,
		fmt.Sprintf("kubectl describe %s --namespace %s", target, leaf.GetNamespace()))
	if leaf.GetKind() == cluster.Pod.Kind {
		lines = append(lines, fmt.Sprintf("kubectl logs %s --all-containers --namespace %s", target, leaf.GetNamespace()))
	}
	return "Commands that show more:\n" + indent(strings.Join(lines, "\n")) + "\n\n`make demo` continues from here."
}
