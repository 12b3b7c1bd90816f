package workloadtest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/multus"
	"asterism.dev/lib/common/workload"
)

// Test runs all checks that need no running operator.
func (s Subject[T]) Test(t *testing.T) {
	s.Subject.Test(t)
	enginetest.Role(t, "../../config/rbac/role.yaml", s)
}

// Run runs every spec of this package, and more, the body of a Describe; nil for none.
//
// All services share the code that these specs check. So one service with a StatefulSet and one
// with a Deployment run every spec, and the others call RunWiring. At least two services run
// each spec, also refusesImages, which is only for services that check their image. Keep it so:
// before one of these services calls the other function, let another service take its place.
func (s Subject[T]) Run(t *testing.T, more func()) {
	t.Helper()
	s.run(t, s.wiring, s.sharedCode, more)
}

// RunWiring runs the specs that show that a service uses the shared code, and that fail if the
// service forgets a Secret, a child or a condition. Golden and Conform check the rest of its
// objects. See Run for the choice.
func (s Subject[T]) RunWiring(t *testing.T, more func()) {
	t.Helper()
	s.run(t, s.wiring, more)
}

func (s Subject[T]) run(t *testing.T, bodies ...func()) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	for _, body := range bodies {
		if body != nil {
			ginkgo.Describe(s.Kind, body)
		}
	}
	ginkgo.RunSpecs(t, s.Kind)
}

func (s Subject[T]) wiring() {
	ginkgo.It("becomes Ready with Secrets only, and is deleted with all its children", s.createsAndDeletes)
	ginkgo.It("names the missing Secret or key, and continues when it exists", s.waitsForSecrets)
	ginkgo.It("restarts its pods, and writes no other objects, when their configuration changes", s.rolls)
	if s.Spec != nil { // a compute owns other options
		ginkgo.It("refuses an invalid snippet without a change of the pods, and rolls out a valid snippet", s.refusesSnippets)
	}
	if slices.Contains(s.Conditions, commonv1.ConditionImageReady) {
		ginkgo.It("keeps its pods while the image lacks a program", s.refusesImages)
	}
	if s.TLS != nil {
		ginkgo.It("serves TLS, and restarts its pods when the certificate changes", s.followsCertificate)
	}
}

func (s Subject[T]) sharedCode() {
	ginkgo.It("reads snippets from Secrets, and shows their values nowhere", s.readsSecretSnippets)
	ginkgo.It("attaches its pods to networks, and reports their addresses", s.attachesNetworks)
	ginkgo.It("can be scaled, and its parent keeps the number", s.scales)
	ginkgo.It("does not change foreign objects, and continues after their deletion", s.avoidsForeignObjects)
	ginkgo.It("keeps the files of the old pods until a rollout has ended", s.keepsOldFiles)
}

func (s Subject[T]) createsAndDeletes() {
	w := s.NewWorld(enginetest.Kubelet{})
	object := w.Ready()
	var conditions []string
	for _, condition := range object.Common().Conditions {
		conditions = append(conditions, condition.Type)
	}
	gomega.Expect(conditions).To(gomega.Equal(append(slices.Clone(s.Conditions), commonv1.ConditionReady)))
	gomega.Expect(w.Running(object)).NotTo(gomega.BeEmpty())

	w.Delete(object, metav1.DeletePropagationBackground)
	enginetest.AwaitGone(ginkgo.GinkgoTB(), w.Client, object)
	w.AwaitNothing(object.GetUID(), s.Service.Owns...)
	for _, input := range s.inputs() {
		gomega.Expect(w.Read(input)).To(gomega.BeTrue(), input.GetName()+" belongs to the user")
	}
}

// waitsForSecrets creates one Secret late, and without a key at first. Conform checks the
// messages for all Secrets.
func (s Subject[T]) waitsForSecrets() {
	w := s.newWorld(enginetest.Kubelet{})
	inputs := s.inputs()
	late := inputs[len(inputs)-1].(*corev1.Secret) //nolint:forcetypeassert // inputs are Secrets
	key := requiredKey(late)
	value := late.StringData[key]
	delete(late.StringData, key)
	w.Create(inputs[:len(inputs)-1]...)
	w.Run(s.Service)
	object := s.Object()
	w.Create(object)
	for _, condition := range []string{commonv1.ConditionInputsReady, commonv1.ConditionReady} {
		enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, condition, engine.ReasonWaiting, "Secret "+late.Name+" does not exist")
	}
	w.Create(late)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionInputsReady, engine.ReasonWaiting, "Secret "+late.Name+" lacks key "+key)
	w.Change(late, func() { late.StringData = map[string]string{key: value} })
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
}

// requiredKey returns a key that the Secret must have.
func requiredKey(secret *corev1.Secret) string {
	for _, key := range []string{"sharedSecret", "password", config.ConnectionsPart} {
		if secret.StringData[key] != "" {
			return key
		}
	}
	ginkgo.Fail("Secret " + secret.Name + " of the sample has no required key")
	return ""
}

// crashes makes pods with some configurations never ready.
type crashes struct {
	on  atomic.Bool
	bad sync.Map
}

func (c *crashes) ready(pod *corev1.Pod) bool {
	hash := configHash(pod.Annotations)
	if c.on.Load() {
		c.bad.Store(hash, true)
	}
	_, bad := c.bad.Load(hash)
	return !bad
}

func (s Subject[T]) refusesSnippets() {
	crashing := &crashes{}
	w := s.NewWorld(enginetest.Kubelet{Ready: crashing.ready})
	object := w.Ready()
	for snippet, parts := range map[string][]string{
		"[DEFAULT]\nthis is not INI":                    {"spec.customServiceConfig", "line 2"},
		"debug = true\n[DEFAULT]":                       {"spec.customServiceConfig", "line 1"},
		"[DEFAULT]\n\ntransport_url = rabbit://mine/":   {"spec.customServiceConfig", "line 3", "[DEFAULT] transport_url is set by the operator"},
		"[database]\nsql_connection=mysql://me:word@x/": {"line 2", "former name of [database] connection"},
	} {
		before, _, _ := w.Pods(object)
		w.Operator.Requests.Reset()
		w.Change(object, func() { s.Spec(object).CustomServiceConfig = snippet })
		enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionConfigReady, engine.ReasonInvalid, parts...)
		enginetest.Await(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionStalled, metav1.ConditionTrue)
		gomega.Expect(enginetest.Conditions(object)).NotTo(gomega.Or(gomega.ContainSubstring("rabbit://mine"), gomega.ContainSubstring("word@x")))
		after, _, _ := w.Pods(object)
		gomega.Expect(after.GetGeneration()).To(gomega.Equal(before.GetGeneration()))
		gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.HaveSuffix("/status " + object.GetName())))
	}
	crashing.on.Store(true)
	w.Change(object, func() { s.Spec(object).CustomServiceConfig = "[DEFAULT]\ncrash = true" })
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionWorkloadReady, engine.ReasonProgressing)
	enginetest.Eventually(ginkgo.GinkgoTB(), "the revision crashes", func() error {
		_, crashed := crashing.bad.Load(w.Hash(object))
		return unless(crashed, "no pod with this configuration exists")
	})
	crashing.on.Store(false)
	crashed := w.Hash(object)
	w.Change(object, func() { s.Spec(object).CustomServiceConfig = "[DEFAULT]\ndebug = true" })
	w.AwaitNewPods(object, crashed)
	gomega.Expect(object.Common().Conditions).NotTo(gomega.ContainElement(gomega.HaveField("Type", commonv1.ConditionStalled)))
	w.Delete(object, metav1.DeletePropagationForeground)
	enginetest.AwaitGone(ginkgo.GinkgoTB(), w.Client, object)
	w.AwaitNothing(object.GetUID(), s.Service.Owns...)
}

func (s Subject[T]) rolls() {
	w := s.NewWorld(enginetest.Kubelet{})
	rules := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rules"}, Data: map[string]string{"r": "{}"}}
	w.Create(rules)
	object := w.Ready(func(object T) {
		s.settings(object).ExtraFiles = []commonv1.ExtraFile{{Name: "rules.json", ConfigMapKeyRef: &commonv1.KeyReference{Name: "rules", Key: "r"}}}
	})
	name, hash := object.GetName(), w.Hash(object)
	pods, status := "apply "+s.resource()+" "+name, gomega.HaveSuffix("/status "+name)

	w.Operator.Requests.Reset()
	w.Change(object, func() { s.settings(object).CustomServiceConfig = "[DEFAULT]\ndebug = true" })
	hash = w.AwaitNewPods(object, hash)
	gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.Or(gomega.MatchRegexp("^(apply|delete) configmaps "+name+"-config-data"), gomega.Equal(pods), status)))

	if s.Spec != nil {
		w.Operator.Requests.Reset()
		w.Change(object, func() { s.Spec(object).RestartTriggers = map[string]string{"cell1": "again"} })
		hash = w.AwaitNewPods(object, hash)
		gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.Or(gomega.Equal(pods), status)))
	}

	w.Operator.Requests.Reset()
	w.Change(rules, func() { rules.Data["r"] = `{"new": true}` })
	hash = w.AwaitNewPods(object, hash)
	gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.Or(gomega.Equal(pods), status)))

	secret := s.inputs()[0].(*corev1.Secret) //nolint:forcetypeassert // inputs are Secrets
	key := requiredKey(secret)
	value := strings.ReplaceAll(secret.StringData[key], "change-me", "another-one")
	w.Operator.Requests.Reset()
	w.Change(secret, func() { secret.StringData = map[string]string{key: value} })
	hash = w.AwaitNewPods(object, hash)
	connections := gomega.HavePrefix("apply secrets " + name + "-connections-")
	gomega.Expect(w.Written()).To(gomega.ContainElements(connections, gomega.Equal(pods)))

	w.Operator.Requests.Reset()
	w.Change(object, func() {
		pod := &s.settings(object).Pod
		pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
		pod.Labels = map[string]string{"cost-centre": "cloud"}
		pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "internalapi"}
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
		object.SetLabels(map[string]string{"foreign": "label"})
	})
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	gomega.Expect(w.Hash(object)).To(gomega.Equal(hash), "the configuration is the same")
	gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.Or(gomega.Equal(pods), status)))
	_, template, _ := w.Pods(object)
	gomega.Expect(template.Labels).To(gomega.HaveKeyWithValue("cost-centre", "cloud"))
	gomega.Expect(template.Annotations).To(gomega.HaveKeyWithValue("k8s.v1.cni.cncf.io/networks", "internalapi"))
	constraints := template.Spec.TopologySpreadConstraints
	gomega.Expect(constraints).To(gomega.HaveLen(1))
	gomega.Expect(constraints[0].LabelSelector.MatchLabels).To(gomega.Equal(engine.Selector(s.Service.Name, name)))
}

func (s Subject[T]) readsSecretSnippets() {
	w := s.NewWorld(enginetest.Kubelet{})
	snippets := func(name, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: named(name), StringData: map[string]string{"snippet": text}}
	}
	first, second := snippets("first", "[cache]\nmemcache_password = c4n4ry"), snippets("second", "[database]\nconnection = mysql://me:c4n4ry@x/")
	w.Create(second)
	object := s.Object(func(object T) {
		s.Spec(object).CustomServiceConfigSecretRefs = []commonv1.SecretReference{{Name: "first"}, {Name: "second"}}
	})
	w.Create(object)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionInputsReady, engine.ReasonWaiting, "Secret first does not exist")
	w.Create(first)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionConfigReady, engine.ReasonWaiting,
		"Secret second in spec.customServiceConfigSecretRefs: key snippet: line 2: [database] connection is set by the operator; remove this line")
	gomega.Expect(enginetest.Conditions(object)).NotTo(gomega.ContainSubstring("c4n4ry"))

	w.Change(second, func() { second.StringData = map[string]string{"snippet": "[cache]\nenabled = true"} })
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	hash := w.Hash(object)
	stored := w.connections(object)
	gomega.Expect(stored.Data).To(gomega.HaveKeyWithValue("91-first.secret.conf", []byte("[cache]\nmemcache_password = c4n4ry\n")))
	gomega.Expect(stored.Data).To(gomega.HaveKeyWithValue("92-second.secret.conf", []byte("[cache]\nenabled = true\n")))

	w.Operator.Requests.Reset()
	w.Change(first, func() { first.StringData = map[string]string{"snippet": "[cache]\nmemcache_password = c4n4ry-2"} })
	w.AwaitNewPods(object, hash)
	pods, status := "apply "+s.resource()+" "+object.GetName(), gomega.HaveSuffix("/status "+object.GetName())
	gomega.Expect(w.Written()).To(gomega.HaveEach(gomega.Or(gomega.MatchRegexp("^(apply|delete) secrets "+object.GetName()+"-connections-"), gomega.Equal(pods), status)))
}

// attachesNetworks stands in for Multus: it writes the annotation of the pod.
func (s Subject[T]) attachesNetworks() {
	w := s.NewWorld(enginetest.Kubelet{})
	enginetest.InstallNetworks(ginkgo.GinkgoTB())
	object := s.Object(func(object T) {
		s.Spec(object).Pod.NetworkAttachments = []commonv1.ObjectReference{{Name: "internalapi"}}
	})
	w.Create(object)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionInputsReady, engine.ReasonWaiting, "NetworkAttachmentDefinition internalapi does not exist")
	network := &multus.NetworkAttachmentDefinition{ObjectMeta: named("internalapi")}
	w.Create(network)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionWorkloadReady, engine.ReasonWaiting, "is not attached to network internalapi")

	for _, pod := range w.Running(object) {
		if pod.Labels[batchv1.JobNameLabel] != "" {
			continue
		}
		w.evict(pod)
		gomega.Expect(pod.Annotations).To(gomega.HaveKeyWithValue(multus.AnnotationNetworks, "internalapi"))
		w.Change(&pod, func() {
			pod.Annotations[multus.AnnotationStatus] = `[{"name": "` + pod.Namespace + `/internalapi", "ips": ["172.17.0.10"]}]`
		})
	}
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	gomega.Expect(object.ServiceStatus().NetworkAttachments).To(gomega.Equal([]commonv1.NetworkAttachmentStatus{{Name: "internalapi", Addresses: []string{"172.17.0.10"}}}))
}

// evict creates the remains of a pod like pod, which Multus has not attached.
func (w *World[T]) evict(pod corev1.Pod) {
	remains := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name + "-evicted", Labels: maps.Clone(pod.Labels)}, Spec: pod.Spec}
	for _, key := range []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, appsv1.StatefulSetPodNameLabel} {
		delete(remains.Labels, key) // otherwise the controller of the pod adopts the remains
	}
	w.Create(remains)
	w.ChangeStatus(remains, func() { remains.Status.Phase = corev1.PodFailed })
}

func (s Subject[T]) scales() {
	w := s.NewWorld(enginetest.Kubelet{})
	object := s.Object(func(object T) { s.Spec(object).Replicas = nil })
	stated := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
	w.Apply(object, "parent")
	object.SetNamespace(w.Namespace)
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}}
	gomega.Expect(w.Read(budget)).To(gomega.BeFalse(), "a single pod has no disruption budget")

	w.Scale(object, 3)
	enginetest.Eventually(ginkgo.GinkgoTB(), "the workload has three pods", func() error {
		_, _, replicas := w.Pods(object)
		return unless(replicas == 3, "the workload has another number")
	})
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	status := object.ServiceStatus()
	gomega.Expect([]int32{status.Replicas, status.ReadyReplicas}).To(gomega.Equal([]int32{3, 3}))
	selector, err := labels.Parse(status.Selector)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	pods := w.Running(object)
	gomega.Expect(pods).To(gomega.HaveLen(3))
	for _, pod := range pods {
		gomega.Expect(selector.Matches(labels.Set(pod.Labels))).To(gomega.BeTrue(), "the scale subresource finds pod "+pod.Name)
	}
	gomega.Expect(w.Read(budget)).To(gomega.BeTrue())

	s.Spec(stated).ContainerImage = "quay.example/openstack/service:next"
	w.Apply(stated, "parent")
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	_, template, replicas := w.Pods(object)
	gomega.Expect(template.Spec.Containers[0].Image).To(gomega.Equal("quay.example/openstack/service:next"))
	gomega.Expect(replicas).To(gomega.BeEquivalentTo(3))

	w.Scale(object, 1)
	enginetest.AwaitGone(ginkgo.GinkgoTB(), w.Client, budget)
}

// refusesImages changes the image to one that lacks a program, and to a complete one.
func (s Subject[T]) refusesImages() {
	incomplete := func(pod *corev1.Pod) (code int32, message string) {
		if pod.Spec.Containers[0].Image == "quay.example/openstack/service:bare" {
			message = "lacks a program"
		}
		return 0, message
	}
	w := s.NewWorld(enginetest.Kubelet{Job: incomplete})
	object := w.Ready()
	before, _, _ := w.Pods(object)
	w.Change(object, func() { s.Spec(object).ContainerImage = "quay.example/openstack/service:bare" })
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionImageReady, workload.ReasonImageIncomplete,
		"image quay.example/openstack/service:bare lacks a program", "set spec.containerImage")
	enginetest.Await(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionStalled, metav1.ConditionTrue)
	after, _, _ := w.Pods(object)
	gomega.Expect(after.GetGeneration()).To(gomega.Equal(before.GetGeneration()), "the pods keep their image")

	w.Change(object, func() { s.Spec(object).ContainerImage = "quay.example/openstack/service:next" })
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	_, template, _ := w.Pods(object)
	gomega.Expect(template.Spec.Containers[0].Image).To(gomega.Equal("quay.example/openstack/service:next"))
}

// followsCertificate replaces the certificate that the pods serve.
func (s Subject[T]) followsCertificate() {
	w := s.NewWorld(enginetest.Kubelet{})
	object := s.Object(func(object T) { *s.TLS(object) = &commonv1.SecretReference{Name: "certificate"} })
	w.Create(object)
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionInputsReady, engine.ReasonWaiting, "Secret certificate does not exist")
	certificate := &corev1.Secret{
		ObjectMeta: named("certificate"),
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("first"), corev1.TLSPrivateKeyKey: []byte("key")},
	}
	w.Create(certificate)
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	_, template, _ := w.Pods(object)
	container := template.Spec.Containers[0]
	gomega.Expect(container.StartupProbe.HTTPGet.Scheme).To(gomega.Equal(corev1.URISchemeHTTPS))
	gomega.Expect(container.LivenessProbe.Exec.Command).To(gomega.HaveExactElements(
		gomega.HaveSuffix("/probe-tls"), strconv.Itoa(int(container.Ports[0].ContainerPort)), container.StartupProbe.HTTPGet.Path))
	before := w.Hash(object)
	w.Change(certificate, func() { certificate.Data[corev1.TLSCertKey] = []byte("second") })
	w.AwaitNewPods(object, before)
}

// keepsOldFiles begins a rollout whose pods are not ready: a pod of the old template must still
// find the files of its template.
func (s Subject[T]) keepsOldFiles() {
	crashing := &crashes{}
	w := s.NewWorld(enginetest.Kubelet{Ready: crashing.ready})
	object := w.Ready()
	before := w.mounted(object)
	crashing.on.Store(true)
	w.Change(object, func() { s.settings(object).CustomServiceConfig = "[DEFAULT]\ncrash = true" })
	enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, commonv1.ConditionWorkloadReady, engine.ReasonProgressing)
	current := &corev1.ConfigMap{ObjectMeta: named(object.GetName() + "-config-data")}
	gomega.Expect(w.Read(current)).To(gomega.BeTrue())
	gomega.Expect(current.Data).To(gomega.HaveKeyWithValue(config.CustomPart, gomega.ContainSubstring("crash = true")))
	for _, old := range before {
		now := old.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
		gomega.Expect(w.Read(now)).To(gomega.BeTrue(), old.GetName())
		gomega.Expect(contentOf(now)).To(gomega.Equal(contentOf(old)), old.GetName())
	}

	crashing.on.Store(false)
	w.Change(object, func() { s.settings(object).CustomServiceConfig = "[DEFAULT]\ndebug = true" })
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
	kept := w.mounted(object)
	for _, old := range before {
		if !slices.ContainsFunc(kept, func(o client.Object) bool { return o.GetName() == old.GetName() }) {
			enginetest.AwaitGone(ginkgo.GinkgoTB(), w.Client, old)
		}
	}
}

// mounted returns the ConfigMaps and Secrets that the newest pods mount.
func (w *World[T]) mounted(object T) (all []client.Object) {
	_, template, _ := w.Pods(object)
	for _, volume := range template.Spec.Volumes {
		switch {
		case volume.ConfigMap != nil:
			all = append(all, &corev1.ConfigMap{ObjectMeta: named(volume.ConfigMap.Name)})
		case volume.Secret != nil:
			all = append(all, &corev1.Secret{ObjectMeta: named(volume.Secret.SecretName)})
		}
	}
	gomega.Expect(all).To(gomega.HaveLen(3))
	for _, o := range all {
		gomega.Expect(w.Read(o)).To(gomega.BeTrue(), o.GetName())
	}
	return all
}

func (w *World[T]) connections(object T) *corev1.Secret {
	for _, o := range w.mounted(object) {
		if secret, ok := o.(*corev1.Secret); ok {
			return secret
		}
	}
	return nil
}

func contentOf(object client.Object) any {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return o.Data
	case *corev1.Secret:
		return o.Data
	}
	return nil
}

// avoidsForeignObjects creates two foreign objects, and deletes them one after the other.
func (s Subject[T]) avoidsForeignObjects() {
	w := s.newWorld(enginetest.Kubelet{})
	w.Create(s.inputs()...)
	object := s.Object()
	in := map[string]client.Object{
		"ConfigMap":  &corev1.ConfigMap{ObjectMeta: named(object.GetName() + "-config-data"), Data: map[string]string{foreignMark: "yes"}},
		s.workload(): s.foreignWorkload(object.GetName()),
	}
	w.Create(slices.Collect(maps.Values(in))...)
	w.Run(s.Service)
	w.Create(object)
	untouched := func(kind, condition string) {
		foreign := in[kind]
		enginetest.AwaitReason(ginkgo.GinkgoTB(), w.Client, object, condition, engine.ReasonConflict,
			kind+" "+foreign.GetName(), "was not created by this operator")
		uid, generation := foreign.GetUID(), foreign.GetGeneration()
		gomega.Expect(w.Read(foreign)).To(gomega.BeTrue())
		gomega.Expect(foreign.GetUID()).To(gomega.Equal(uid))
		gomega.Expect(foreign.GetGeneration()).To(gomega.Equal(generation))
		for _, entry := range foreign.GetManagedFields() {
			gomega.Expect(entry.Manager).NotTo(gomega.HavePrefix(s.Service.Name))
		}
		w.Delete(foreign, metav1.DeletePropagationBackground)
	}
	untouched("ConfigMap", commonv1.ConditionConfigReady)
	untouched(s.workload(), commonv1.ConditionWorkloadReady)
	enginetest.AwaitReady(ginkgo.GinkgoTB(), w.Client, object)
}

func (s Subject[T]) workload() string {
	if s.Stateful {
		return "StatefulSet"
	}
	return "Deployment"
}

// foreignMark marks foreign objects.
const foreignMark = "foreign"

func (s Subject[T]) foreignWorkload(name string) client.Object {
	marked := map[string]string{foreignMark: "yes"}
	selector := &metav1.LabelSelector{MatchLabels: marked}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: marked},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: foreignMark, Image: foreignMark}}},
	}
	if s.Stateful {
		return &appsv1.StatefulSet{ObjectMeta: named(name), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0)), Selector: selector, Template: template}}
	}
	return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: selector, Template: template}}
}
