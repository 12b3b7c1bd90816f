package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/engine"
)

// jobDeadlineSeconds ends a Job that hangs; a schema of a large cloud may take long.
const jobDeadlineSeconds = 3600

// Task is work that is done once, in the service's image and with its
// configuration.
type Task struct {
	// Purpose names the Job: <instance>-<purpose>-<hash>.
	Purpose string
	// Script is shell, stopped at the first command that fails. What it writes to
	// /dev/termination-log is the Job's result; if it fails, that is the end of
	// its output.
	Script string
	// Arguments of the script: $1 and so on.
	Arguments []string
	// Depends are the things whose change makes it necessary again.
	Depends []string
}

// Job does a Task once for what it depends on; nothing else makes it run again.
func (s Service) Job(task Task) engine.Child {
	main := s.main(task.Purpose, Start(append([]string{"sh", "-ec", task.Script, "sh"}, task.Arguments...)...)).
		WithEnv(s.impatient()...).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	pod := s.pod("", main)
	pod.Annotations = nil
	pod.Spec.Affinity = s.nodeAffinity()
	pod.Spec.WithRestartPolicy(corev1.RestartPolicyNever)
	pod.Spec.InitContainers[0].WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	return engine.Once(applybatchv1.Job(s.JobName(task), "").WithSpec(applybatchv1.JobSpec().
		WithBackoffLimit(0).
		WithActiveDeadlineSeconds(jobDeadlineSeconds).
		WithTemplate(pod)), task.Depends...)
}

// JobName is the name by which engine.Inputs.Result knows the Job.
func (s Service) JobName(task Task) string { return s.Instance + "-" + task.Purpose }

// impatient makes oslo.db give up soon: a service waits for its database, a Job
// fails, says why and is run again. The environment goes before files.
func (s Service) impatient() []*applycorev1.EnvVarApplyConfiguration {
	var env []*applycorev1.EnvVarApplyConfiguration
	for _, database := range s.Databases {
		prefix := "OS_" + strings.ToUpper(database.Section) + "__"
		env = append(env,
			applycorev1.EnvVar().WithName(prefix+"MAX_RETRIES").WithValue("3"),
			applycorev1.EnvVar().WithName(prefix+"RETRY_INTERVAL").WithValue("1"))
	}
	return env
}
