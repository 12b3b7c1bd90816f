package compute

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

const (
	operatorsAccount = "system:serviceaccount:asterism-system:asterism-nova-compute-operator"
	allowedImage     = "quay.example/openstack/nova:26.2.2"
	foreignImage     = "quay.example/openstack-of/the/editor:1"
	serversLabel     = "example.org/servers"

	// The messages of config/run-on-host/admission.yaml.
	onlyTheController = "only DaemonSets of the nova-compute operator have pods that control their node"
	onlyTheOperator   = "only the ServiceAccount asterism-system/asterism-nova-compute-operator may write objects whose pods control their node"
	onlyLabeledNodes  = "the nodeSelector must contain a label " + serversLabel
	onlyAllowedImages = "every image must begin with one of the prefixes"
)

// privilegedScene is a namespace that an administrator has prepared for computes with driver
// Libvirt, with such a compute, and an editor.
type privilegedScene struct {
	*enginetest.World
	editor  client.Client
	compute *novav1.NovaCompute
	set     *appsv1.DaemonSet
	pod     corev1.Pod // of the set
}

// newPrivilegedScene runs the operator with its own account, so that policies judge it.
func newPrivilegedScene() *privilegedScene {
	GinkgoHelper()
	enginetest.InstallCRDs(GinkgoTB(), "../../config/crd")
	s := &privilegedScene{World: enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{}, novav1.AddToScheme)}
	s.editor = enginetest.Editor(GinkgoTB(), s.Namespace, []string{novav1.GroupVersion.Group}, novav1.AddToScheme)
	s.permit("debugger", "editor-of-"+s.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{rbacv1.VerbAll}})
	s.permit("operator", operatorsAccount, rules("../../config/rbac/role.yaml")...)
	s.namespaceHas(`{"labels": {"asterism.dev/run-on-host": "restricted", "pod-security.kubernetes.io/enforce": "privileged"},
		"annotations": {"asterism.dev/run-on-host-node-label": "example.org/servers", "asterism.dev/run-on-host-images": "quay.example/o quay.example/openstack/"}}`)
	s.Operator = enginetest.RunWith(GinkgoTB(), s.Namespace, enginetest.Scheme(GinkgoTB(), novav1.AddToScheme),
		[]enginetest.Option{func(config *rest.Config, _ *ctrl.Options) { config.Impersonate.UserName = operatorsAccount }}, Service)

	secret := &corev1.Secret{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(enginetest.ReadSample(GinkgoTB(), sample, "Secret").Object, secret)).To(Succeed())
	s.Create(secret, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "asterism-run-on-host"}})
	s.compute = &novav1.NovaCompute{}
	enginetest.DecodeSample(GinkgoTB(), "../../config/samples/libvirt.yaml", "NovaCompute", s.compute)
	s.compute.Namespace = s.Namespace
	s.compute.Spec.ContainerImage = allowedImage
	s.compute.Spec.Libvirt.NodeSelector = map[string]string{serversLabel: s.Namespace}
	s.set = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.compute.Name}}
	s.addNode()
	return s
}

// addNode creates a node of the compute, for the time of the test.
func (s *privilegedScene) addNode() {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-" + s.Namespace, Labels: s.compute.Spec.Libvirt.NodeSelector}}
	Expect(s.Client.Create(context.Background(), node)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) error { return s.Client.Delete(ctx, node) })
	// The API server taints a node that has no kubelet yet.
	Expect(s.Client.Patch(context.Background(), node, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"taints": null}}`)))).To(Succeed())
}

// rules returns those of the ClusterRole in a file.
func rules(path string) []rbacv1.PolicyRule {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(enginetest.ReadSample(GinkgoTB(), path, "ClusterRole").Object, role)).To(Succeed())
	return role.Rules
}

// permit gives a user rights in the namespace.
func (s *privilegedScene) permit(name, user string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	own := metav1.ObjectMeta{Name: name}
	s.Create(&rbacv1.Role{ObjectMeta: own, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: own, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// as returns the client of a user.
func (s *privilegedScene) as(user string) client.Client {
	GinkgoHelper()
	config := enginetest.Config(GinkgoTB())
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: enginetest.Scheme(GinkgoTB(), novav1.AddToScheme)})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// namespaceHas changes the metadata of the namespace, as an administrator does.
func (s *privilegedScene) namespaceHas(metadata string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": %s}`, metadata))
	Expect(s.Client.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}, patch)).To(Succeed())
}

// startCompute creates the compute, and waits for its pod.
func (s *privilegedScene) startCompute() {
	GinkgoHelper()
	Expect(s.editor.Create(context.Background(), s.compute)).To(Succeed())
	s.pod = podOf(s.World, s.compute.Name)
	Expect(s.Read(s.set)).To(BeTrue())
}

// enforcePolicies applies the policies of config/run-on-host to this namespace, and waits until
// they are in effect.
func (s *privilegedScene) enforcePolicies() {
	GinkgoHelper()
	for _, object := range enginetest.ReadSamples(GinkgoTB(), "../../../../config/run-on-host/admission.yaml") {
		object.SetName(s.Namespace + "-" + object.GetName())
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			Expect(unstructured.SetNestedField(object.Object, object.GetName(), "spec", "policyName")).To(Succeed())
			path := []string{"spec", "matchResources", "namespaceSelector", "matchExpressions"} // other suites use the same server
			selector, _, err := unstructured.NestedSlice(object.Object, path...)
			Expect(err).NotTo(HaveOccurred())
			own := map[string]any{"key": corev1.LabelMetadataName, "operator": "In", "values": []any{s.Namespace}}
			Expect(unstructured.SetNestedSlice(object.Object, append(selector, own), path...)).To(Succeed())
		}
		Expect(s.Client.Create(context.Background(), object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return s.Client.Delete(ctx, object) })
	}
	account := s.ordinaryPod("probe")
	account.Spec.ServiceAccountName = "asterism-run-on-host"
	s.awaitForbidden(account, onlyTheController)
	s.namespaceHas(`{"labels": {"asterism.dev/run-on-host": null}}`)
	s.awaitForbidden(account, "asterism.dev/run-on-host=restricted")
	s.namespaceHas(`{"labels": {"asterism.dev/run-on-host": "restricted"}}`)
	s.awaitForbidden(account, onlyTheController)
}

func (s *privilegedScene) awaitForbidden(pod *corev1.Pod, message string) {
	GinkgoHelper()
	Eventually(func() error { return s.tryAs(s.editor, pod) }).WithTimeout(time.Minute).Should(MatchError(ContainSubstring(message)))
}

// tryAs tries a creation.
func (s *privilegedScene) tryAs(user client.Client, object client.Object) error {
	return user.Create(context.Background(), object.DeepCopyObject().(client.Object), client.DryRunAll)
}

// ordinaryPod has an image and the node label that the namespace allows.
func (s *privilegedScene) ordinaryPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"a": "b"}}}
	pod.Spec.NodeSelector = s.compute.Spec.Libvirt.NodeSelector
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: allowedImage, SecurityContext: &corev1.SecurityContext{}}}
	return pod
}

// privilegedPods are pods that control their node, each by one field.
func (s *privilegedScene) privilegedPods() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	add := func(name string, change func(*corev1.PodSpec)) {
		pod := s.ordinaryPod("mine")
		change(&pod.Spec)
		pods[name] = pod
	}
	add("privileged", func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Privileged = new(true) })
	add("privileged init container", func(p *corev1.PodSpec) {
		p.InitContainers = []corev1.Container{{Name: "init", Image: allowedImage, SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
	})
	add("hostPID", func(p *corev1.PodSpec) { p.HostPID = true })
	add("hostIPC", func(p *corev1.PodSpec) { p.HostIPC = true })
	add("hostNetwork", func(p *corev1.PodSpec) { p.HostNetwork = true })
	add("hostPort", func(p *corev1.PodSpec) {
		p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	})
	add("hostPath", func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	})
	add("capability", func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_MODULE"}}
	})
	add("SELinux type", func(p *corev1.PodSpec) {
		p.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}
	})
	add("account", func(p *corev1.PodSpec) { p.ServiceAccountName = "asterism-run-on-host" })
	add("older field of the account", func(p *corev1.PodSpec) { p.DeprecatedServiceAccount = "asterism-run-on-host" })
	owned := s.ordinaryPod("mine")
	owned.Spec.HostPID = true
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	owned.OwnerReferences[0].BlockOwnerDeletion = nil // which takes the right to set finalizers
	pods["owner reference of the editor"] = owned
	return pods
}

// workloads returns an object of each kind that creates pods.
func workloads(pod *corev1.Pod) map[string]client.Object {
	meta, labels := metav1.ObjectMeta{Namespace: pod.Namespace, Name: "mine"}, metav1.LabelSelector{MatchLabels: pod.Labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	ending := *template.DeepCopy()
	ending.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Template: ending}
	return map[string]client.Object{
		"DaemonSet":             &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: &labels, Template: template}},
		"Deployment":            &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &labels, Template: template}},
		"ReplicaSet":            &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: &labels, Template: template}},
		"StatefulSet":           &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: &labels, Template: template}},
		"ReplicationController": &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: pod.Labels, Template: &template}},
		"Job":                   &batchv1.Job{ObjectMeta: meta, Spec: job},
		"CronJob":               &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
	}
}

// debug tries to add an ephemeral container to a pod.
func (s *privilegedScene) debug(pod *corev1.Pod, privileged bool) error {
	pod = pod.DeepCopy()
	pod.ResourceVersion = "" // the kubelet changes the status meanwhile
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Image: allowedImage, SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
	}}}
	return s.editor.SubResource("ephemeralcontainers").Update(context.Background(), pod, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
}

// tryPatch tries a change of an object by the editor.
func (s *privilegedScene) tryPatch(object client.Object, patch string) error {
	return s.editor.Patch(context.Background(), object.DeepCopyObject().(client.Object), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll)
}

// setOfCompute returns the compute's DaemonSet under another name, with a change.
func (s *privilegedScene) setOfCompute(change func(*corev1.PodSpec)) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "mine"}, Spec: *s.set.Spec.DeepCopy()}
	change(&set.Spec.Template.Spec)
	return set
}

// trial is a request that changes nothing, and the message of its refusal.
type trial struct {
	request func() error
	message string
}

// failed returns the errors of requests.
func failed(requests map[string]trial) map[string]error {
	errs := map[string]error{}
	for name, attack := range requests {
		if err := attack.request(); err != nil {
			errs[name] = err
		}
	}
	return errs
}

// attacks returns requests that make their author root on a node.
func (s *privilegedScene) attacks(ordinary *corev1.Pod) map[string]trial {
	attacks := map[string]trial{}
	for name, pod := range s.privilegedPods() {
		attacks["pod: "+name] = trial{func() error { return s.tryAs(s.editor, pod) }, onlyTheController}
	}
	for kind, object := range workloads(s.privilegedPods()["privileged"]) {
		attacks["an editor's "+kind] = trial{func() error { return s.tryAs(s.editor, object) }, onlyTheOperator}
	}
	for name, container := range map[string]string{"image": "containers", "image of the init container": "initContainers"} {
		spec := fmt.Sprintf(`{"spec": {%q: [{"name": %q, "image": %q}]}}`, container, map[string]string{"containers": "nova-compute", "initContainers": "merge-config"}[container], allowedImage+"1")
		attacks["change the "+name+" of the compute's pod"] = trial{func() error { return s.tryPatch(&s.pod, spec) }, onlyTheController}
		attacks["change the "+name+" of the compute's DaemonSet"] = trial{func() error { return s.tryPatch(s.set, `{"spec": {"template": `+spec+`}}`) }, onlyTheOperator}
	}
	attacks["privileged ephemeral container"] = trial{func() error { return s.debug(ordinary, true) }, onlyTheController}
	attacks["ephemeral container in the compute's pod"] = trial{func() error { return s.debug(&s.pod, false) }, onlyTheController}
	namesake, other := "system:serviceaccount:"+s.Namespace+":asterism-nova-compute-operator", "system:serviceaccount:asterism-system:asterism-nova-api-operator"
	for _, account := range []string{namesake, other} {
		attacks["DaemonSet of "+account] = trial{func() error { return s.tryAs(s.as(account), s.setOfCompute(func(*corev1.PodSpec) {})) }, onlyTheOperator}
	}
	for name, a := range map[string]struct {
		change  func(*corev1.PodSpec)
		message string
	}{
		"no node label":           {func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"kubernetes.io/os": "linux"} }, onlyLabeledNodes},
		"no nodeSelector":         {func(p *corev1.PodSpec) { p.NodeSelector = nil }, onlyLabeledNodes},
		"a foreign image":         {func(p *corev1.PodSpec) { p.Containers[0].Image = foreignImage }, onlyAllowedImages},
		"a foreign init image":    {func(p *corev1.PodSpec) { p.InitContainers[0].Image = foreignImage }, onlyAllowedImages},
		"an image without a host": {func(p *corev1.PodSpec) { p.Containers[0].Image = "openstack/nova" }, onlyAllowedImages},
	} {
		set := s.setOfCompute(a.change)
		attacks["the operator's DaemonSet with "+name] = trial{func() error { return s.tryAs(s.as(operatorsAccount), set) }, a.message}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "mine-"}, Spec: set.Spec.Template.Spec}
		pod.OwnerReferences = s.privilegedPods()["owner reference of the editor"].OwnerReferences
		attacks["the controller's pod with "+name] = trial{func() error { return s.tryAs(s.as("system:serviceaccount:kube-system:daemon-set-controller"), pod) }, a.message}
	}
	return attacks
}

// ordinary returns requests that remain allowed.
func (s *privilegedScene) ordinary(pod *corev1.Pod) map[string]trial {
	restart := `{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}`
	foreign := s.ordinaryPod("foreign")
	foreign.Spec.NodeSelector, foreign.Spec.Containers[0].Image = nil, foreignImage
	foreign.Spec.Containers[0].SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}}
	requests := map[string]trial{
		"pod with any image on any node": {request: func() error { return s.tryAs(s.editor, foreign) }},
		"other image of a pod":           {request: func() error { return s.tryPatch(pod, `{"spec": {"containers": [{"name": "main", "image": "other"}]}}`) }},
		"ephemeral container":            {request: func() error { return s.debug(pod, false) }},
		"restart of the DaemonSet":       {request: func() error { return s.tryPatch(s.set, restart) }},
		"label of the compute's pod":     {request: func() error { return s.tryPatch(&s.pod, `{"metadata": {"labels": {"c": "d"}}}`) }},
		"deletion of the compute's pod":  {request: func() error { return s.editor.Delete(context.Background(), s.pod.DeepCopy(), client.DryRunAll) }},
		"deletion of the DaemonSet":      {request: func() error { return s.editor.Delete(context.Background(), s.set.DeepCopy(), client.DryRunAll) }},
		"the operator's DaemonSet": {request: func() error {
			return s.tryAs(s.as(operatorsAccount), s.setOfCompute(func(p *corev1.PodSpec) { p.NodeSelector["a"] = "b" }))
		}},
	}
	for kind, object := range workloads(foreign) {
		requests[kind] = trial{request: func() error { return s.tryAs(s.editor, object) }}
	}
	return requests
}

var _ = Describe("The policies of config/run-on-host", func() {
	var s *privilegedScene
	BeforeEach(func() { s = newPrivilegedScene() })

	It("refuse attacks of an editor, which succeed without them, and no ordinary pods", func() {
		s.startCompute()
		rights := rules("../../config/rbac/role.yaml")
		s.permit("namesake", "system:serviceaccount:"+s.Namespace+":asterism-nova-compute-operator", rights...)
		s.permit("other", "system:serviceaccount:asterism-system:asterism-nova-api-operator", rights...)
		ordinary := s.ordinaryPod("ordinary")
		Expect(s.editor.Create(context.Background(), ordinary)).To(Succeed())
		attacks := s.attacks(ordinary)
		Expect(failed(attacks)).To(BeEmpty(), "without the policies")
		s.enforcePolicies()
		refusals := failed(attacks)
		for name, attack := range attacks {
			Expect(refusals[name]).To(MatchError(ContainSubstring(attack.message)), name)
			Expect(apierrors.IsForbidden(refusals[name])).To(BeTrue(), name)
		}
		Expect(failed(s.ordinary(ordinary))).To(BeEmpty())
		s.Operator.Stop()
		Expect(s.editor.Delete(context.Background(), s.set, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		enginetest.AwaitGone(GinkgoTB(), s.Client, s.set, &s.pod)
	})

	It("admit a NovaCompute only with an allowed image and a node label", func() {
		s.enforcePolicies()
		blocked := func(compute *novav1.NovaCompute, parts ...string) {
			GinkgoHelper()
			enginetest.AwaitReason(GinkgoTB(), s.Client, compute, novav1.ConditionWorkloadReady, engine.ReasonError, parts...)
		}
		elsewhere := s.compute.DeepCopy()
		elsewhere.Name = "elsewhere"
		elsewhere.Spec.Libvirt.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
		s.compute.Spec.ContainerImage = foreignImage
		for _, compute := range []*novav1.NovaCompute{s.compute, elsewhere} {
			Expect(s.editor.Create(context.Background(), compute)).To(Succeed())
		}
		blocked(s.compute, onlyAllowedImages, "quay.example/openstack/")
		blocked(elsewhere, onlyLabeledNodes)
		s.namespaceHas(`{"annotations": {"asterism.dev/run-on-host-node-label": null}}`)
		blocked(elsewhere, `"kubectl annotate namespace `+s.Namespace+` asterism.dev/run-on-host-node-label=KEY"`)
		s.namespaceHas(`{"annotations": {"asterism.dev/run-on-host-node-label": "example.org/servers", "asterism.dev/run-on-host-operator": "asterism-system/other"}}`)
		s.Change(s.compute, func() { s.compute.Spec.ContainerImage = allowedImage })
		blocked(s.compute, "only the ServiceAccount asterism-system/other")
		Expect(s.Read(s.set)).To(BeFalse())
		s.namespaceHas(`{"annotations": {"asterism.dev/run-on-host-operator": "asterism-system/asterism-nova-compute-operator"}}`)
		s.pod = podOf(s.World, s.compute.Name)
		Expect(s.pod.Spec.HostPID).To(BeTrue())
		enginetest.AwaitReady(GinkgoTB(), s.Client, s.compute)
	})
})
