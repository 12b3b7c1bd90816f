package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// jobDeadlineSeconds ends a Job that hangs; a schema of a large cloud may take long.
const jobDeadlineSeconds = 3600

// Job runs commands of the service's image one after another, with the service's
// configuration. It is run once for the image and the content of the database
// Secrets; nothing else of the configuration matters to it.
//
// The result of the last command is the Job's: what a command writes to
// /dev/termination-log, or the end of its output if it fails.
func (s Service) Job(in engine.Inputs, purpose string, script ...string) (engine.Child, error) {
	hash, err := s.databaseHash(in)
	if err != nil {
		return nil, err
	}
	commands := strings.Join(script, "\n")
	main := s.main(purpose, []string{config.ScriptsDir + "/" + config.StartService, "sh", "-ec", commands}).
		WithEnv(s.impatient()...).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	pod := s.pod(hash, main)
	pod.Spec.WithRestartPolicy(corev1.RestartPolicyNever)
	pod.Spec.InitContainers[0].WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	return engine.Once(applybatchv1.Job(s.Instance+"-"+purpose, "").WithSpec(applybatchv1.JobSpec().
		WithBackoffLimit(0).
		WithActiveDeadlineSeconds(jobDeadlineSeconds).
		WithTemplate(pod)), hash, s.Spec.ContainerImage, commands), nil
}

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
