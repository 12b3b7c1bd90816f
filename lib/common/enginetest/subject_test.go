package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

type (
	stage   = engine.Stage[*widget.Widget]
	subject = enginetest.Subject[*widget.Widget]
)

// sound is a subject in which Conform finds nothing.
func sound() subject {
	return subject{
		Service: engine.Service[*widget.Widget]{
			Name: "widget",
			Stages: []stage{
				{Condition: "InputsReady", Needs: func(cr *widget.Widget) []engine.Need {
					return []engine.Need{engine.Secret(cr.Spec.SecretName, "password")}
				}, Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
					return nil, errors.New("a call outside is played")
				}},
				{Condition: "ConfigReady", Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
					return []engine.Child{
						engine.Generated(applycorev1.Secret(cr.Name+"-generated", ""), "key"),
						applycorev1.ConfigMap(cr.Name, "").WithData(map[string]string{"text": cr.Spec.Text, "account": in.Observed("InputsReady")["account"]}),
						engine.Absent(applycorev1.ConfigMap(cr.Name+"-never", "")),
					}, nil
				}},
				{Condition: "SchemaReady", Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
					return []engine.Child{engine.Once(syncJob(cr))}, nil
				}, Report: func(cr *widget.Widget, in engine.Inputs) { cr.Status.Reported = in.Result(cr.Name + "-sync") }},
				{Condition: "RackReady", Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
					return []engine.Child{&widget.Rack{
						ObjectMeta: metav1.ObjectMeta{Name: cr.Name},
						Spec:       widget.Spec{Text: string(in.Secret(cr.Name + "-generated")["key"])},
					}}, nil
				}},
			},
			Owns: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &widget.Rack{}},
		},
		AddToScheme: []func(*runtime.Scheme) error{widget.AddToScheme},
		Conditions:  []string{"InputsReady", "ConfigReady", "SchemaReady", "RackReady"},
		CRDs:        []string{"../internal/widget/crd"},
		RoleFile:    "testdata/role.yaml",
	}
}

func syncJob(cr *widget.Widget) *applybatchv1.JobApplyConfiguration {
	return applybatchv1.Job(cr.Name+"-sync", "").WithSpec(applybatchv1.JobSpec().WithBackoffLimit(0).
		WithTemplate(applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithRestartPolicy(corev1.RestartPolicyNever).
			WithContainers(applycorev1.Container().WithName("sync").WithImage("registry.invalid/image:1")))))
}

func TestGolden(t *testing.T)  { sound().Golden(t) }
func TestConform(t *testing.T) { sound().Conform(t) }
func TestSmoke(t *testing.T)   { sound().Smoke(t) }
func TestRole(t *testing.T)    { enginetest.Role(t, "testdata/role.yaml", sound()) }

func TestConformFinds(t *testing.T) {
	build := func(child func(cr *widget.Widget) engine.Child) func(*subject) {
		return func(s *subject) {
			s.Service.Stages[1].Build = func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
				return []engine.Child{child(cr)}, nil
			}
			s.Service.Stages[2].Build, s.Service.Stages[2].Report = nil, nil
		}
	}
	for name, violation := range map[string]struct {
		change func(*subject)
		found  string
	}{
		"a condition that is not exported": {
			func(s *subject) { s.Conditions = s.Conditions[1:] }, "the API package lists [ConfigReady SchemaReady RackReady]",
		},
		"a condition that two stages have": {
			func(s *subject) { s.Service.Teardown = []stage{{Condition: "InputsReady"}} }, "two stages have the condition InputsReady",
		},
		"a password that can be guessed": {
			func(s *subject) {
				s.Service.Stages[1].Build = func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
					return []engine.Child{applycorev1.ConfigMap(cr.Name, "").WithAnnotations(map[string]string{
						"test/hash": engine.Hash(in.Secret(cr.Spec.SecretName)) + "-" + in.Hash(in.Secret(cr.Spec.SecretName)),
					})}, nil
				}
			}, "ConfigMap.metadata.annotations.test/hash",
		},
		"chance": {
			build(func(cr *widget.Widget) engine.Child {
				return applycorev1.ConfigMap(cr.Name, "").WithData(map[string]string{"a": fmt.Sprint(rand.Int())})
			}), "not deterministic",
		},
		"a kind that is not owned": {
			build(func(cr *widget.Widget) engine.Child { return applycorev1.Service(cr.Name, "") }), "Service plain is built, but its kind is not in Owns",
		},
		"a name that does not fit": {
			func(s *subject) {
				build(func(cr *widget.Widget) engine.Child {
					return applycorev1.Service(cr.Name+"-which-is-made-too-long-by-this", "")
				})(s)
				s.Service.Owns = append(s.Service.Owns, &corev1.Service{})
			}, "has 71 characters, 63 at most",
		},
		"stringData": {
			build(func(cr *widget.Widget) engine.Child {
				return applycorev1.Secret(cr.Name, "").WithStringData(map[string]string{"a": "b"})
			}), "stringData is not tracked",
		},
		"a null": {
			build(func(cr *widget.Widget) engine.Child {
				job := syncJob(cr)
				job.Spec.Template.Spec.Containers[0].WithResources(applycorev1.ResourceRequirements().WithLimits(nil))
				return engine.Once(job)
			}), "spec.template.spec.containers[].resources.limits is null",
		},
		"a Job that retries itself": {
			build(func(cr *widget.Widget) engine.Child {
				job := syncJob(cr)
				job.Spec.WithBackoffLimit(3)
				return engine.Once(job)
			}), "backoffLimit is 3",
		},
		"a variable that is there twice": {
			build(func(cr *widget.Widget) engine.Child {
				job := syncJob(cr)
				job.Spec.Template.Spec.Containers[0].WithEnv(applycorev1.EnvVar().WithName("A"), applycorev1.EnvVar().WithName("A"))
				return engine.Once(job)
			}), "environment variable A is there twice",
		},
		"a Service that selects the pods of a Job": {
			func(s *subject) {
				build(func(cr *widget.Widget) engine.Child {
					return applycorev1.Service(cr.Name, "").WithSpec(applycorev1.ServiceSpec().WithSelector(engine.Selector("widget", cr.Name)))
				})(s)
				s.Service.Stages[2].Build = func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
					job := syncJob(cr)
					job.Spec.Template.WithLabels(engine.Selector("widget", cr.Name))
					return []engine.Child{engine.Once(job)}, nil
				}
				s.Service.Owns = append(s.Service.Owns, &corev1.Service{})
			}, "Service plain selects the pods of Job plain-sync-",
		},
		"a Job that keeps away from pods": {
			build(func(cr *widget.Widget) engine.Child {
				job := syncJob(cr)
				job.Spec.Template.Spec.WithAffinity(applycorev1.Affinity().WithPodAntiAffinity(applycorev1.PodAntiAffinity()))
				return engine.Once(job)
			}), "has a podAntiAffinity",
		},
		"a rule that keeps away from the pods of a Job": {
			build(func(cr *widget.Widget) engine.Child {
				job := syncJob(cr)
				job.Spec.Template.WithLabels(map[string]string{"app": "widget"})
				job.Spec.Template.Spec.WithAffinity(applycorev1.Affinity().WithPodAntiAffinity(applycorev1.PodAntiAffinity().
					WithRequiredDuringSchedulingIgnoredDuringExecution(applycorev1.PodAffinityTerm().
						WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "widget"})))))
				return engine.Once(job)
			}), "selects the pods of Job plain-sync-",
		},
		"a need that is not waited for": {
			func(s *subject) {
				early := stage{
					Condition: "Early",
					Needs: func(cr *widget.Widget) []engine.Need {
						return []engine.Need{engine.Secret(cr.Spec.SecretName).Optional()}
					},
					Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
						if in.Secret(cr.Spec.SecretName) == nil {
							return nil, errors.New("index out of range")
						}
						return nil, nil
					},
				}
				s.Service.Stages = append([]stage{early}, s.Service.Stages...)
			}, `without Secret database the reason is "Error"`,
		},
		"a right that is not granted": {
			func(s *subject) {
				s.Service.Owns = append(s.Service.Owns, &corev1.PersistentVolumeClaim{})
			}, "role.yaml does not grant create on persistentvolumeclaims",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound()
			violation.change(&s)
			NewWithT(t).Expect(s.Problems(t)).To(ContainElement(ContainSubstring(violation.found)))
		})
	}
}
