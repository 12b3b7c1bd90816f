package chart

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// removalCheck returns the Job that Helm runs before it deletes a release: the pod of the
// operator's Deployment with another argument. The pod fails while objects of the operator's
// kinds exist. Then Helm prints the pod's log, and deletes nothing.
func removalCheck(deployment *unstructured.Unstructured) *unstructured.Unstructured {
	job := deployment.DeepCopy()
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetName(deployment.GetName() + "-removal")
	job.SetAnnotations(map[string]string{
		"helm.sh/hook":                   "pre-delete",
		"helm.sh/hook-delete-policy":     "before-hook-creation,hook-succeeded",
		"helm.sh/hook-output-log-policy": "hook-failed",
	})
	template := podTemplate(job)
	pod := template["spec"].(map[string]any)
	pod["restartPolicy"] = "Never"
	container := pod["containers"].([]any)[0].(map[string]any)
	container["args"] = []any{"--check-removal"}
	for _, served := range []string{"livenessProbe", "readinessProbe", "ports"} {
		delete(container, served)
	}
	job.Object["spec"] = map[string]any{"backoffLimit": int64(0), "activeDeadlineSeconds": int64(120), "template": template}
	return job
}

// podTemplate returns the template of the pods of a Deployment or Job.
func podTemplate(object *unstructured.Unstructured) map[string]any {
	return object.Object["spec"].(map[string]any)["template"].(map[string]any)
}
