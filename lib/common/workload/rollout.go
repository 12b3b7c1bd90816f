package workload

import (
	"fmt"
	"path"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// Stateful builds a service whose pods have stable names, because its rows in the database
// have the names of the pods. A pod is ready while it has a connection to its own database
// and to the message bus. There is no liveness probe: a waiting pod is not restarted.
//
// Each probe starts processes on the node, therefore the probes are ten seconds apart.
//
// The pod management is Parallel, because OrderedReady would never replace a broken
// revision.
func (s Service) Stateful(in engine.Inputs) ([]engine.Child, error) {
	pod, err := s.connectedPod(in)
	if err != nil {
		return nil, err
	}
	set := applyappsv1.StatefulSet(s.Instance, "").WithSpec(applyappsv1.StatefulSetSpec().
		WithReplicas(s.replicas()).
		WithServiceName(s.Instance).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithSelector(s.selector()).
		WithTemplate(pod))
	return slices.Concat(s.networkPolicy(), []engine.Child{set}, s.disruptionBudget()), nil
}

// connectedPod returns the template of a pod that is ready while it has its connections.
func (s Service) connectedPod(in engine.Inputs) (*applycorev1.PodTemplateSpecApplyConfiguration, error) {
	r, err := s.revision(in)
	if err != nil {
		return nil, err
	}
	ports, err := s.probePorts(in)
	if err != nil {
		return nil, err
	}
	main := s.main(s.Name, s.Command).WithReadinessProbe(probe(s.Spec.Probes.Readiness, 10, 5, 3).
		WithExec(applycorev1.ExecAction().WithCommand(append([]string{config.ScriptsDir + "/" + config.Probe}, ports...)...)))
	return s.withGrace(s.servicePod(in, r, main), 0), nil
}

// leaveSeconds is the time for which a pod that is being deleted still answers new
// requests, until every node has removed the pod from its Service.
const leaveSeconds = 10

// endSeconds is the time between the end of GraceSeconds and the kill of a pod.
const endSeconds = 20

// hungSeconds is the time of a liveness probe: half of the time of a request, at least 30
// seconds. A container is restarted after three such times without an answer.
func (s Service) hungSeconds() int32 {
	const least = 30
	if s.WSGI == nil {
		return least
	}
	return max(least, int32(s.WSGI.Settings.Timeout()/2)) //nolint:gosec // bounded by the schema
}

// probe returns a probe with the settings of the spec in place of the defaults.
func probe(override *commonv1.Probe, periodSeconds, timeoutSeconds, failureThreshold int32) *applycorev1.ProbeApplyConfiguration {
	stated := ptr.Deref(override, commonv1.Probe{})
	return applycorev1.Probe().
		WithPeriodSeconds(ptr.Deref(stated.PeriodSeconds, periodSeconds)).
		WithTimeoutSeconds(ptr.Deref(stated.TimeoutSeconds, timeoutSeconds)).
		WithFailureThreshold(ptr.Deref(stated.FailureThreshold, failureThreshold))
}

// Stateless builds an HTTP service, with its Kubernetes Service. The path of the probes uses
// neither database nor bus.
//
// A started pod is ready while it accepts connections. A request as the readiness probe
// would wait behind the requests of users: while Keystone does not answer, or under load,
// all pods would leave the Service, and every request would be refused.
//
// The liveness probe is an HTTP request, because the kernel accepts the connections of a
// frozen process. It accepts an answer within the whole period: a slow service passes, and
// only a service that answers nothing at all is restarted, without the time for requests. With TLS,
// a command sends the request: see Port.answers.
func (s Service) Stateless(in engine.Inputs) ([]engine.Child, error) {
	r, err := s.revision(in)
	if err != nil {
		return nil, err
	}
	probes, hung := s.Spec.Probes, s.hungSeconds()
	liveness := probe(probes.Liveness, hung, hung, 3).WithTerminationGracePeriodSeconds(endSeconds)
	s.Port.answers(liveness)
	main := s.main(s.Name, s.serve()).
		WithPorts(applycorev1.ContainerPort().WithName(s.Port.Name).WithContainerPort(s.Port.Number)).
		WithLifecycle(applycorev1.Lifecycle().WithPreStop(s.drain())).
		WithReadinessProbe(probe(probes.Readiness, 5, 5, 3).WithTCPSocket(applycorev1.TCPSocketAction().WithPort(s.Port.target()))).
		WithLivenessProbe(liveness).
		WithStartupProbe(probe(probes.Startup, 1, 5, 300).WithHTTPGet(s.Port.health()))
	deployment := applyappsv1.Deployment(s.Instance, "").WithSpec(applyappsv1.DeploymentSpec().
		WithReplicas(s.replicas()).
		WithSelector(s.selector()).
		WithStrategy(applyappsv1.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(applyappsv1.RollingUpdateDeployment().WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
		WithTemplate(s.withGrace(s.servicePod(in, r, main), leaveSeconds)))
	service := applycorev1.Service(s.Instance, "").WithSpec(applycorev1.ServiceSpec().
		WithSelector(engine.Selector(s.Name, s.Instance)).
		WithPorts(applycorev1.ServicePort().WithName(s.Port.Name).WithPort(s.Port.Number).WithTargetPort(s.Port.target())))
	return slices.Concat(s.networkPolicy(), []engine.Child{service, deployment}, s.disruptionBudget()), nil
}

// drain is what a pod that is being deleted does before its service is stopped. No server
// answers the requests that wait for it when it is stopped: under load these are many.
func (s Service) drain() *applycorev1.LifecycleHandlerApplyConfiguration {
	return applycorev1.LifecycleHandler().WithExec(applycorev1.ExecAction().WithCommand(
		path.Join(config.ScriptsDir, drainName), fmt.Sprint(s.Port.Number), fmt.Sprint(s.GraceSeconds), fmt.Sprint(leaveSeconds)))
}

// withGrace sets the time until a pod is killed, in which it first leaves its Service.
func (s Service) withGrace(pod *applycorev1.PodTemplateSpecApplyConfiguration, leave int64) *applycorev1.PodTemplateSpecApplyConfiguration {
	pod.Spec.WithTerminationGracePeriodSeconds(leave + s.GraceSeconds + endSeconds)
	return pod
}

func (s Service) selector() *applymetav1.LabelSelectorApplyConfiguration {
	return applymetav1.LabelSelector().WithMatchLabels(engine.Selector(s.Name, s.Instance))
}

// disruptionBudget allows the eviction of one pod at a time. A pod that is not ready, for example
// because a server does not answer, serves nobody and holds up no drain of its node. A service with a
// single pod has no budget.
func (s Service) disruptionBudget() []engine.Child {
	if s.replicas() < 2 {
		return nil
	}
	return []engine.Child{applypolicyv1.PodDisruptionBudget(s.Instance, "").WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
		WithSelector(s.selector()))}
}

// Report copies the state of the pods into the status that the scale subresource reads.
func (s Service) Report(status *commonv1.ServiceStatus, in engine.Inputs) {
	status.Selector = labels.SelectorFromSet(engine.Selector(s.Name, s.Instance)).String()
	status.NetworkAttachments = s.attachments(in)
	if r, err := s.revision(in); err == nil {
		status.ConfigHash = s.configHash(in, r)
	}
	if set, ok := engine.Get[*appsv1.StatefulSet](in, s.Instance); ok {
		status.Replicas, status.ReadyReplicas = set.Status.Replicas, set.Status.ReadyReplicas
	}
	if set, ok := engine.Get[*appsv1.DaemonSet](in, s.Instance); ok {
		status.Replicas, status.ReadyReplicas = set.Status.CurrentNumberScheduled, set.Status.NumberReady
	}
	if deployment, ok := engine.Get[*appsv1.Deployment](in, s.Instance); ok {
		status.Replicas, status.ReadyReplicas = deployment.Status.Replicas, deployment.Status.ReadyReplicas
	}
}
