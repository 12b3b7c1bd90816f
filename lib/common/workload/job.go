package workload

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/engine"
)

const jobDeadline = time.Hour

// Task is a script that a Job runs once, in the service's image and with its configuration.
type Task struct {
	// Purpose names the Job: <instance>-<purpose>-<hash>.
	Purpose string
	// Script is a shell script that ends at the first command that fails. The Job's result
	// is the content of /dev/termination-log, or, if the script fails without such content,
	// the end of its output.
	Script string
	// Arguments of the script: $1 and so on.
	Arguments []string
	// Depends are the values whose change runs the task again.
	Depends []string
	// Uninterrupted lets the Job run to its end when its Depends change, once its pod has started.
	Uninterrupted bool
	// Deadline ends a Job that hangs, or whose pod cannot start. Default: an hour.
	Deadline time.Duration
}

// Run builds the Job of a Task, and the revision that its pod mounts.
func (s Service) Run(in engine.Inputs, task Task) ([]engine.Child, error) {
	r, err := s.revision(in)
	if err != nil {
		return nil, err
	}
	return append(r.children(), s.job(r, task)), nil
}

// Job runs a Task once for the values of its Depends. An earlier stage has built the revision that
// its pod mounts, by Configuration or by Run.
func (s Service) Job(in engine.Inputs, task Task) ([]engine.Child, error) {
	r, err := s.revision(in)
	if err != nil {
		return nil, err
	}
	return []engine.Child{s.job(r, task)}, nil
}

func (s Service) job(r revision, task Task) engine.Child {
	s.RunOnHost = false
	main := s.main(task.Purpose, Start(append([]string{"sh", "-ec", task.Script, "sh"}, task.Arguments...)...)).
		WithEnv(s.fewRetries()...)
	return s.once(task, s.pod(r, main))
}

// once runs the pod of a Task.
func (s Service) once(task Task, pod *applycorev1.PodTemplateSpecApplyConfiguration) engine.Child {
	pod.Spec.Affinity = s.nodeAffinity()
	pod.Spec.TopologySpreadConstraints = nil
	pod.Spec.WithRestartPolicy(corev1.RestartPolicyNever)
	spec := applybatchv1.JobSpec().
		WithBackoffLimit(0).
		WithActiveDeadlineSeconds(int64(cmp.Or(task.Deadline, jobDeadline).Seconds())).
		WithTemplate(pod)
	job := engine.Once(applybatchv1.Job(s.JobName(task), "").WithSpec(spec), task.Depends...)
	if task.Uninterrupted {
		return engine.Uninterrupted(job)
	}
	return job
}

// longestRun is the length of a Job's name without -<hash>: the whole name becomes a label, and
// so has at most 63 characters.
const longestRun = 63 - len("-12345678")

// JobName is the name of the Job for engine.Inputs.Result. The end of a long instance's name is
// replaced by a hash.
func (s Service) JobName(task Task) string {
	instance, longest := s.Instance, longestRun-len("-"+task.Purpose)
	if len(instance) > longest {
		sum := engine.Hash(instance)[:8]
		instance = strings.TrimRight(instance[:longest-len("-"+sum)], "-") + "-" + sum
	}
	return instance + "-" + task.Purpose
}

// fewRetries returns variables that limit the retries of oslo.db: a service waits for its
// database, but a Job fails with an error and runs again. Variables override files.
func (s Service) fewRetries() []*applycorev1.EnvVarApplyConfiguration {
	var env []*applycorev1.EnvVarApplyConfiguration
	for _, database := range s.Databases {
		prefix := "OS_" + strings.ToUpper(database.Section) + "__"
		env = append(env,
			applycorev1.EnvVar().WithName(prefix+"MAX_RETRIES").WithValue("3"),
			applycorev1.EnvVar().WithName(prefix+"RETRY_INTERVAL").WithValue("1"))
	}
	return env
}
