package engine_test

import (
	"fmt"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// owner is the name of every test's service, and therefore the field owner of children.
const owner = "widget"

type (
	stage   = engine.Stage[*widget.Widget]
	service = engine.Service[*widget.Widget]
)

// build returns a stage with a builder that cannot fail.
func build(condition string, children func(*widget.Widget, engine.Inputs) []engine.Child) stage {
	return stage{Condition: condition, Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
		return children(cr, in), nil
	}}
}

// when returns the child if the condition holds, otherwise an Absent child.
func when(condition bool, child engine.Child) engine.Child {
	if condition {
		return child
	}
	return engine.Absent(child)
}

// configMap has the text.
func configMap(name, text string) *applycorev1.ConfigMapApplyConfiguration {
	return applycorev1.ConfigMap(name, "").WithData(map[string]string{"text": text})
}

// configMaps is a stage with one ConfigMap, named after the widget.
func configMaps(condition string) stage {
	return build(condition, func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name, cr.Spec.Text)}
	})
}

func pods(cr *widget.Widget) *applycorev1.PodTemplateSpecApplyConfiguration {
	return applycorev1.PodTemplateSpec().
		WithLabels(engine.Selector(owner, cr.Name)).
		WithAnnotations(map[string]string{"text": cr.Spec.Text}).
		WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("main").WithImage("registry.invalid/image:1").
			WithEnv(applycorev1.EnvVar().WithName("TEXT").WithValue("text")).
			WithPorts(applycorev1.ContainerPort().WithName("http").WithContainerPort(8774))))
}

func statefulSet(cr *widget.Widget) *applyappsv1.StatefulSetApplyConfiguration {
	spec := applyappsv1.StatefulSetSpec().
		WithServiceName(cr.Name).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(engine.Selector(owner, cr.Name))).
		WithTemplate(pods(cr))
	if cr.Spec.Replicas != nil {
		spec.WithReplicas(*cr.Spec.Replicas)
	}
	return applyappsv1.StatefulSet(cr.Name, "").WithSpec(spec)
}

func serviceOf(cr *widget.Widget) *applycorev1.ServiceApplyConfiguration {
	return applycorev1.Service(cr.Name, "").WithSpec(applycorev1.ServiceSpec().
		WithSelector(engine.Selector(owner, cr.Name)).
		WithPorts(applycorev1.ServicePort().WithName("http").WithPort(8774).WithTargetPort(intstr.FromString("http"))))
}

func disruptionBudget(cr *widget.Widget) *applypolicyv1.PodDisruptionBudgetApplyConfiguration {
	return applypolicyv1.PodDisruptionBudget(cr.Name, "").WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(engine.Selector(owner, cr.Name))))
}

// job runs once for each text.
func job(cr *widget.Widget, name string) *applybatchv1.JobApplyConfiguration {
	return applybatchv1.Job(name, "").WithSpec(applybatchv1.JobSpec().WithBackoffLimit(0).
		WithTemplate(applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithContainers(applycorev1.Container().WithName("sync").WithImage("registry.invalid/image:1").WithArgs("sync", cr.Spec.Text)))))
}

// volume is a cluster-scoped child, named after the widget and its namespace.
func volume(cr *widget.Widget) *applycorev1.PersistentVolumeApplyConfiguration {
	return applycorev1.PersistentVolume(volumeName(cr)).WithSpec(applycorev1.PersistentVolumeSpec().
		WithAccessModes(corev1.ReadWriteMany).
		WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
		WithStorageClassName("").
		WithCapacity(corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}).
		WithHostPath(applycorev1.HostPathVolumeSource().WithPath("/nowhere")))
}

func volumeName(cr *widget.Widget) string {
	return strings.Join([]string{cr.Namespace, cr.Name}, "-")
}

// owns is every kind that the children of these tests have.
var owns = []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func containsFinalizers(fields string) bool { return strings.Contains(fields, "f:finalizers") }

// bodyOf returns the object of an apply.
func bodyOf(obj runtime.ApplyConfiguration) *unstructured.Unstructured {
	content, ok := obj.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		panic("the engine applies an object that is not unstructured") //nolint:forbidigo // the test itself is wrong
	}
	return &unstructured.Unstructured{Object: content.UnstructuredContent()}
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, routev1.Install, widget.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) //nolint:forbidigo // the test itself is wrong
		}
	}
	return s
}()

func mustGVK(obj client.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		panic(err) //nolint:forbidigo // the test itself is wrong
	}
	return gvk
}

func secret(name string) *applycorev1.SecretApplyConfiguration { return applycorev1.Secret(name, "") }

// names returns the names of the objects of a list, with their types.
func names(list client.ObjectList) []string {
	objects, err := meta.ExtractList(list)
	if err != nil {
		panic(err) //nolint:forbidigo // the test itself is wrong
	}
	var all []string
	for _, object := range objects {
		all = append(all, fmt.Sprintf("%T %s", object, object.(client.Object).GetName()))
	}
	return all
}
