// Package workloadtest has specs for every service, in Ginkgo, against a real API server.
package workloadtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/workload"
)

// Subject is the kind of one service under test.
type Subject[T workload.Object] struct {
	enginetest.Subject[T]
	// Sample is a file with an object of kind T and the Secrets that it needs. The object
	// needs no other objects.
	Sample string
	// Kind of T.
	Kind string
	// Stateful is true for a service with a StatefulSet, and false for a Deployment.
	Stateful bool
	// Spec is the part of the object that all services have; nil for a kind that only has
	// Settings.
	Spec func(T) *commonv1.ServiceSpec
	// Settings are the part of Spec that a kind without replicas has; nil with Spec.
	Settings func(T) *commonv1.ServiceSettings
	// TLS returns the field with the certificate that the pods serve; nil for a service without it.
	TLS func(T) **commonv1.SecretReference
	// Vary changes the sample if the API server of the test lacks a kind; nil: no change.
	Vary func(T)
}

func (s Subject[T]) settings(object T) *commonv1.ServiceSettings {
	if s.Settings != nil {
		return s.Settings(object)
	}
	return &s.Spec(object).ServiceSettings
}

// World is a world with the objects of the sample, except the object of kind T.
type World[T workload.Object] struct {
	*enginetest.World
	Subject Subject[T]
}

// NewWorld creates the Secrets of the sample and starts the operator.
func (s Subject[T]) NewWorld(kubelet enginetest.Kubelet) *World[T] {
	w := s.newWorld(kubelet)
	w.Create(s.inputs()...)
	w.Run(s.Service)
	return w
}

func (s Subject[T]) newWorld(kubelet enginetest.Kubelet) *World[T] {
	enginetest.InstallCRDs(ginkgo.GinkgoTB(), append(s.CRDs, "../../config/crd")...)
	return &World[T]{World: enginetest.NewWorld(ginkgo.GinkgoTB(), kubelet, s.AddToScheme...), Subject: s}
}

// Object returns the object of the sample, after the changes.
func (s Subject[T]) Object(changes ...func(T)) T {
	var object T
	enginetest.DecodeSample(ginkgo.GinkgoTB(), s.Sample, s.Kind, &object)
	if s.Vary != nil {
		s.Vary(object)
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

// inputs returns the other objects of the sample, which are Secrets.
func (s Subject[T]) inputs() []client.Object {
	var all []client.Object
	for _, sample := range enginetest.ReadSamples(ginkgo.GinkgoTB(), s.Sample) {
		if sample.GetKind() != s.Kind {
			secret := &corev1.Secret{}
			gomega.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(sample.Object, secret)).To(gomega.Succeed())
			all = append(all, secret)
		}
	}
	return all
}

// Ready creates the object and waits until it is Ready.
func (w *World[T]) Ready(changes ...func(T)) T {
	object := w.Subject.Object(changes...)
	w.Create(object)
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	return object
}

// Pods returns the StatefulSet or the Deployment of the object in its present version.
func (w *World[T]) Pods(object T) (owner client.Object, template corev1.PodTemplateSpec, replicas int32) {
	if w.Subject.Stateful {
		set := &appsv1.StatefulSet{}
		set.Name = object.GetName()
		gomega.Expect(w.Read(set)).To(gomega.BeTrue(), "the StatefulSet exists")
		return set, set.Spec.Template, *set.Spec.Replicas
	}
	deployment := &appsv1.Deployment{}
	deployment.Name = object.GetName()
	gomega.Expect(w.Read(deployment)).To(gomega.BeTrue(), "the Deployment exists")
	return deployment, deployment.Spec.Template, *deployment.Spec.Replicas
}

// Hash returns the hash of the configuration of the newest pods.
func (w *World[T]) Hash(object T) string {
	_, template, _ := w.Pods(object)
	return configHash(template.Annotations)
}

func configHash(annotations map[string]string) string { return annotations["asterism.dev/config-hash"] }

// resource is the plural of the workload's kind.
func (s Subject[T]) resource() string {
	if s.Stateful {
		return "statefulsets"
	}
	return "deployments"
}

// Running returns the pods of the service that are not being deleted.
func (w *World[T]) Running(object T) []corev1.Pod {
	pods := &corev1.PodList{}
	gomega.Expect(w.Client.List(context.Background(), pods, client.InNamespace(w.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": object.GetName()})).To(gomega.Succeed())
	var running []corev1.Pod
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}
	return running
}

// AwaitNewPods waits until the object is Ready with another configuration than before, and
// returns the hash. Then no pod may have an older configuration.
func (w *World[T]) AwaitNewPods(object T, before string) (hash string) {
	enginetest.Eventually(ginkgo.GinkgoTB(), "the pods have a new configuration", func() error {
		if hash = w.Hash(object); hash == before {
			return fmt.Errorf("the workload still has %s", hash)
		}
		enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
		return unless(object.ServiceStatus().ConfigHash == hash, "the status is of "+object.ServiceStatus().ConfigHash)
	})
	pods := w.Running(object)
	gomega.Expect(pods).NotTo(gomega.BeEmpty())
	for _, pod := range pods {
		gomega.Expect(configHash(pod.Annotations)).To(gomega.Equal(hash), "pod "+pod.Name)
	}
	return hash
}

// unless returns an error with the problem unless the condition holds.
func unless(holds bool, problem string) error {
	if holds {
		return nil
	}
	return errors.New(problem)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
