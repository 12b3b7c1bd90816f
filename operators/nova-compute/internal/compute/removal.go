package compute

import (
	_ "embed"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

// remove.py is run by Jobs, so that the operator itself uses no account and connects to no
// server that a user names (docs/adr/0027).
//
//go:embed remove.py
var removePy string

// Steps of remove.py, and the results of empty if there is no compute API, or no host is known.
// Otherwise the result has the names of the hosts.
const (
	stepEmpty      = "empty"
	stepUnregister = "unregister"
	resultAbsent   = "absent"
	resultNone     = "none"
)

// hostsOf returns the hosts of the compute in Nova: the name of the compute, or the nodes of
// its pods, which exist until the compute is stopped.
func hostsOf(cr *novav1.NovaCompute, in engine.Inputs) []string {
	if cr.Spec.Libvirt == nil {
		return []string{cr.Name}
	}
	var hosts []string
	for _, pod := range podsOf(cr).In(in) {
		if pod.Spec.NodeName != "" {
			hosts = append(hosts, pod.Spec.NodeName)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func podsOf(cr *novav1.NovaCompute) engine.List[*corev1.Pod] {
	return engine.Labelled[*corev1.Pod](engine.Selector("nova-compute", cr.Name))
}

// hostNeeds are met without a pod. Only the nodes of the pods are inputs.
func hostNeeds(cr *novav1.NovaCompute) []engine.Need {
	if cr.Spec.Libvirt == nil {
		return nil
	}
	return []engine.Need{podsOf(cr).Counting(func(pod client.Object) any {
		return pod.(*corev1.Pod).Spec.NodeName //nolint:forcetypeassert // the need finds pods
	})}
}

// reportHosts is called only when the pods are known: the status keeps its hosts otherwise.
func reportHosts(cr *novav1.NovaCompute, in engine.Inputs) {
	hosts := hostsOf(cr, in)
	cr.Status.Hosts = hosts[:min(len(hosts), novav1.MaxHosts)]
}

// removalNeeds are met without the Secrets: the removal continues if they are deleted.
func removalNeeds(cr *novav1.NovaCompute) []engine.Need {
	needs := []engine.Need{engine.Secret(cr.Spec.ComputeConfigSecretRef.Name, config.ConnectionsPart).Optional()}
	if cr.Spec.Ironic != nil {
		needs = append(needs, engine.Secret(cr.Spec.Ironic.SecretRef.Name).Optional())
	}
	return append(needs, hostNeeds(cr)...)
}

// empty builds the configuration of both Jobs, and the Job that disables the compute service
// and is complete when no server is on the host. The pod runs until then.
func empty(cr *novav1.NovaCompute, in engine.Inputs) ([]engine.Child, error) {
	s, task, err := removalTask(cr, in, stepEmpty, hostsOf(cr, in))
	if err != nil {
		return nil, err
	}
	return s.Run(in, task)
}

func stop(cr *novav1.NovaCompute, _ engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.Libvirt != nil {
		return []engine.Child{engine.Absent(applyappsv1.DaemonSet(cr.Name, ""))}, nil
	}
	return []engine.Child{engine.Absent(applyappsv1.StatefulSet(cr.Name, ""))}, nil
}

// unregister builds the Job that deletes the compute service, the mapping of the host and its
// resource provider. Nova refuses this while a server is on the host.
func unregister(cr *novav1.NovaCompute, in engine.Inputs) ([]engine.Child, error) {
	result := in.Result(describe(cr).JobName(workload.Task{Purpose: stepEmpty}))
	switch result {
	case resultAbsent:
		return nil, engine.Abandon("the resource providers of NovaCompute %s: the catalog has no compute API", cr.Name)
	case resultNone:
		return nil, engine.Abandon("the compute services of the nodes of NovaCompute %s: no node had a pod of its DaemonSet", cr.Name)
	}
	hosts := hostsOf(cr, in)
	if cr.Spec.Libvirt != nil {
		hosts = strings.Fields(result)
	}
	s, task, err := removalTask(cr, in, stepUnregister, hosts)
	if err != nil {
		return nil, err
	}
	return s.Job(in, task)
}

func removalTask(cr *novav1.NovaCompute, in engine.Inputs, step string, hosts []string) (workload.Service, workload.Task, error) {
	s := describe(cr)
	// The Jobs do not use Ironic, and so do not wait for its Secret.
	s.Accounts = slices.DeleteFunc(s.Accounts, func(a workload.Account) bool { return in.Secret(a.Secret) == nil })
	if why := abandoned(cr, in); why != "" {
		return s, workload.Task{}, engine.Abandon("the compute services of NovaCompute %s, their mappings and resource providers: %s", cr.Name, why)
	}
	if slices.Contains(cr.Finalizers, metav1.FinalizerDeleteDependents) {
		return s, workload.Task{}, engine.Wait("the garbage collector deletes the pods and Jobs of a deletion in the foreground first")
	}
	return s, workload.Task{
		Purpose: step,
		Script: `result=$(python3 -c "$@")
printf %s "$result" > /dev/termination-log`,
		Arguments: append([]string{removePy, step, cr.Namespace + "/" + cr.Name, region(cr, in)}, hosts...),
		Depends:   []string{step},
	}, nil
}

// region returns the region of the compute API, "" if the compute Secret does not state it.
// The configuration of the compute has only the regions of the services that Nova calls.
func region(cr *novav1.NovaCompute, in engine.Inputs) string {
	return string(in.Secret(cr.Spec.ComputeConfigSecretRef.Name)[config.KeyRegion])
}

// abandoned returns the reason for which no Job can remove the compute, "" for none.
func abandoned(cr *novav1.NovaCompute, in engine.Inputs) string {
	name := cr.Spec.ComputeConfigSecretRef.Name
	switch {
	case cr.Annotations[commonv1.AnnotationAbandon] == "true":
		return "annotation " + commonv1.AnnotationAbandon
	case in.Secret(name) == nil:
		return "Secret " + name + " no longer exists"
	}
	return ""
}
