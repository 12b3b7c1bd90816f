package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const logLines = 15

// explain adds to a failure what the cluster knows about it.
func (d *demo) explain(ctx context.Context, failure error) error {
	missing := &notReadyError{}
	if ctx.Err() != nil || d.kube == nil || !errors.As(failure, &missing) {
		return failure
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	objects, err := d.kube.family(ctx)
	if err != nil {
		return fmt.Errorf("%w\nand the cluster does not say why: %w", failure, err)
	}
	all := newFamily(objects)
	sections := []string{failure.Error()}
	if root := all.find(missing.object.kind, missing.object.name); root != nil {
		found := all.diagnose(root)
		sections = append(sections, "What is stuck:\n"+indent(found.String()))
		sections = append(sections, d.evidence(ctx, all, found.leaf())...)
		sections = append(sections, d.further(found.leaf()))
	}
	return errors.New(strings.Join(sections, "\n\n"))
}

// evidence is what a person would read next: warnings, and the log that tells why.
func (d *demo) evidence(ctx context.Context, all *family, leaf *unstructured.Unstructured) []string {
	var found []string
	if warnings := d.kube.warnings(ctx, leaf); warnings != "" {
		found = append(found, fmt.Sprintf("Warnings about %s/%s:\n%s", leaf.GetKind(), leaf.GetName(), indent(warnings)))
	}
	switch {
	case leaf.GetKind() == kindPod:
		if trouble := podTrouble(leaf); trouble.logged {
			found = append(found, d.kube.logOf(ctx, leaf, trouble.container, trouble.previous, ""))
		}
	case isFamily(leaf) && !all.diagnose(leaf).stalled(): // a stalled one has said all
		found = append(found, d.operatorEvidence(ctx, all, leaf)...)
	}
	return found
}

// operatorEvidence is what the operator says about its object, or what keeps
// the operator from saying anything.
func (d *demo) operatorEvidence(ctx context.Context, all *family, o *unstructured.Unstructured) []string {
	names, err := d.operators()
	if err != nil {
		return []string{err.Error()}
	}
	deployment := all.find(kindDeployment, operatorDeployment(responsible(o.GetKind(), names)).name)
	if deployment == nil {
		return nil
	}
	if !readiness(deployment).ready {
		found := all.diagnose(deployment)
		return append([]string{"Its operator does not run:\n" + indent(found.String())}, d.evidence(ctx, all, found.leaf())...)
	}
	var logs []string
	for _, set := range all.children[deployment.GetUID()] {
		for _, pod := range all.children[set.GetUID()] {
			logs = append(logs, d.kube.logOf(ctx, pod, "operator", false, o.GetName()))
		}
	}
	return logs
}

// warnings are the last events that something is wrong with the object.
func (k *kube) warnings(ctx context.Context, o *unstructured.Unstructured) string {
	list, err := k.typed.CoreV1().Events(o.GetNamespace()).List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.uid=" + string(o.GetUID()),
	})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, event := range list.Items {
		lines = append(lines, fmt.Sprintf("%s: %s", event.Reason, strings.TrimSpace(event.Message)))
	}
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// logOf gives the last lines of a container's log, those about a name if there are any.
func (k *kube) logOf(ctx context.Context, pod *unstructured.Unstructured, container string, previous bool, about string) string {
	lines := int64(2000)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}
	content, err := k.typed.CoreV1().Pods(pod.GetNamespace()).GetLogs(pod.GetName(), options).DoRaw(ctx)
	title := fmt.Sprintf("Last lines of container %s of Pod/%s", container, pod.GetName())
	if previous {
		title += ", its previous run"
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", title, err)
	}
	return title + ":\n" + indent(lastLines(linesAbout(string(content), about), logLines))
}

// linesAbout keeps the lines with a word, or all if none has it.
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

// further says what to type to see more.
func (d *demo) further(leaf *unstructured.Unstructured) string {
	var lines []string
	if !d.existing {
		lines = append(lines, ". "+d.short(d.dir)+"/env")
	}
	what := fmt.Sprintf("%s/%s", strings.ToLower(leaf.GetKind()), leaf.GetName())
	lines = append(lines,
		"kubectl get openstack,pods --namespace "+namespace,
		fmt.Sprintf("kubectl describe %s --namespace %s", what, leaf.GetNamespace()))
	if leaf.GetKind() == kindPod {
		lines = append(lines, fmt.Sprintf("kubectl logs %s --all-containers --namespace %s", what, leaf.GetNamespace()))
	}
	return "To look further:\n" + indent(strings.Join(lines, "\n")) + "\n\n`make demo` tries again from here."
}
