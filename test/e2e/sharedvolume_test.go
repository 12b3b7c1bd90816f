package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaces of users: the namespace that the example of a policy names, and a namespace
// with the label that the policy selects.
const (
	teamNamespace   = "team-a"
	readerNamespace = "e2e-readers"
)

// IDs of the examples and of the demo's ControlPlane.
const (
	fileSystem       = "fs-484648c8"
	accessPoint      = "fsap-097bd0daaba932e64"
	otherAccessPoint = "fsap-0000000e"
)

// otherPolicy grants the team a second access point.
const otherPolicy = `
apiVersion: storage.asterism.dev/v1alpha1
kind: SharedVolumePolicy
metadata: {name: e2e}
spec:
  namespaces: {names: [` + teamNamespace + `]}
  fileSystems: [{fileSystemID: ` + fileSystem + `, accessPointIDs: [` + otherAccessPoint + `]}]
`

// These specs use the unchanged examples, with the demo's driver and volume.
var _ = Describe("A shared volume", Ordered, func() {
	images := object(sharedVolume, teamNamespace, "images")

	BeforeAll(func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		for _, namespace := range []string{teamNamespace, readerNamespace} {
			makeNamespace(ctx, namespace)
		}
		kubectl(ctx, "label", "namespace", readerNamespace, "shared-storage=readers")
		applyExample(ctx, "", "driver.yaml")
		applyExample(ctx, "", "policy.yaml")
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "sharedvolumepolicies", "--ignore-not-found", "team-a", "readers", "e2e")
			kubectl(ctx, "delete", "namespaces", "--ignore-not-found", teamNamespace, readerNamespace)
		})
	})

	It("shares files between pods of two namespaces", func(ctx SpecContext) {
		applyExample(ctx, teamNamespace, "minimal.yaml")
		awaitReady(ctx, sharedVolume, teamNamespace, "images")
		startPod(ctx, teamNamespace, "writer", "images")

		const demoPod = "shared-files-0"
		Expect(execIn(ctx, teamNamespace, "writer", "cat", "/shared/"+demoPod)).To(Equal("written by " + demoPod + "\n"))
		shell(ctx, teamNamespace, "writer", "echo written by the team > /shared/team")
		Expect(execIn(ctx, demoNamespace, demoPod, "cat", "/shared/team")).To(Equal("written by the team\n"))
	})

	It("is read-only if the policy allows only reading", func(ctx SpecContext) {
		applyExample(ctx, readerNamespace, "read-only.yaml")
		awaitReady(ctx, sharedVolume, readerNamespace, "images-read-only")
		startPod(ctx, readerNamespace, "reader", "images-read-only")
		Expect(execIn(ctx, readerNamespace, "reader", "cat", "/shared/team")).To(Equal("written by the team\n"))
		_, err := execIn(ctx, readerNamespace, "reader", "touch", "/shared/team")
		Expect(err).To(MatchError(ContainSubstring("Read-only file system")))
	})

	It("is in the status of the policy that allows it", func(ctx SpecContext) {
		Expect(kubectl(ctx, "get", "sharedvolumepolicy", "demo", "--output=jsonpath={.status.namespaces[*].name}")).To(Equal(demoNamespace))
	})

	It("is denied an access that no policy grants", func(ctx SpecContext) {
		applyExample(ctx, readerNamespace, "minimal.yaml")
		awaitFalse(ctx, object(sharedVolume, readerNamespace, "images"), "Allowed", "Denied", "administrator")
		Expect(missing(ctx, claim(readerNamespace, "images"))).To(BeTrue())
	})

	It("changes after the deletion of the pod that its status names", func(ctx SpecContext) {
		apply(ctx, teamNamespace, otherPolicy)
		setAccessPoint(ctx, images, otherAccessPoint)
		awaitBlocked(ctx, images, "writer")
		Expect(textOf(read(ctx, sharedVolume, teamNamespace, "images"), "status", "accessPointID")).To(Equal(accessPoint), "the access point in effect")
		shell(ctx, teamNamespace, "writer", "echo still > /shared/team")

		deletePod(ctx, teamNamespace, "writer")
		awaitWithin(ctx, patience, sharedVolume, teamNamespace, "images", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(isReady(o)).To(BeTrue(), "%s", conditionOf(o, "Ready"))
			g.Expect(textOf(o, "status", "accessPointID")).To(Equal(otherAccessPoint))
			g.Expect(o.Object["status"]).NotTo(HaveKey("blockedBy"))
		})
		startPod(ctx, teamNamespace, "writer", "images")
		_, err := execIn(ctx, teamNamespace, "writer", "ls", "/shared/team")
		Expect(err).To(MatchError(ContainSubstring("No such file")), "the other access point must have another folder")
		Expect(execIn(ctx, demoNamespace, "shared-files-0", "cat", "/shared/team")).To(Equal("still\n"))
	})

	It("stays until the pods that use it are deleted", func(ctx SpecContext) {
		volume := &corev1.PersistentVolume{}
		volume.Name = textOf(read(ctx, sharedVolume, teamNamespace, "images"), "status", "volumeName")
		Expect(missing(ctx, volume)).To(BeFalse())
		Expect(k8s.Delete(ctx, images.DeepCopy())).To(Succeed())
		awaitBlocked(ctx, images, "writer")
		shell(ctx, teamNamespace, "writer", "echo still > /shared/other")

		deletePod(ctx, teamNamespace, "writer")
		for _, deleted := range []client.Object{images.DeepCopy(), claim(teamNamespace, "images"), volume} {
			Eventually(missing).WithArguments(ctx, deleted).WithContext(ctx).Should(BeTrue(), "%T %s", deleted, deleted.GetName())
		}
	})

	It("finds its previous files when it is recreated", func(ctx SpecContext) {
		applyExample(ctx, teamNamespace, "minimal.yaml")
		awaitReady(ctx, sharedVolume, teamNamespace, "images")
		startPod(ctx, teamNamespace, "writer", "images")
		Expect(execIn(ctx, teamNamespace, "writer", "cat", "/shared/team")).To(Equal("still\n"))
	})

	It("has file systems that name the missing account of AWS, and that are deleted without one", func(ctx SpecContext) {
		applyExample(ctx, "", "file-system.yaml")
		system := object("SharedFileSystem", "", "shared")
		awaitFalse(ctx, system, "FileSystemReady", "AWSNotConfigured", "spec.aws")
		Expect(k8s.Delete(ctx, system)).To(Succeed())
		Eventually(missing).WithArguments(ctx, system).WithContext(ctx).Should(BeTrue())
	})

	It("does not block the deletion of its namespace, and leaves no volume", func(ctx SpecContext) {
		kubectl(ctx, "delete", "namespace", teamNamespace, "--timeout="+patience.String())
		var left corev1.PersistentVolumeList
		Expect(k8s.List(ctx, &left)).To(Succeed())
		for _, volume := range left.Items {
			if claim := volume.Spec.ClaimRef; claim != nil { // a volume of the node may be unused
				Expect(claim.Namespace).NotTo(Equal(teamNamespace), volume.Name)
			}
		}
	}, NodeTimeout(2*patience))
})

func applyExample(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	args := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=" + tester, "-f", repository("examples", "shared-volume", name)}
	if namespace != "" {
		args = append(args, "--namespace="+namespace)
	}
	kubectl(ctx, args...)
}

// startPod starts a pod with the claim mounted at /shared, and waits until it runs.
func startPod(ctx context.Context, namespace, name, claimName string) {
	GinkgoHelper()
	apply(ctx, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: %d, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: user
    image: %s
    imagePullPolicy: IfNotPresent
    command: [sleep, infinity]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: shared, mountPath: /shared}]
  volumes: [{name: shared, persistentVolumeClaim: {claimName: %s}}]
`, name, randomUID, openStack, claimName))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed(), func() string { return explain(namespace) })
}

func deletePod(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	kubectl(ctx, "delete", "pod", name, "--namespace="+namespace)
}

func shell(ctx context.Context, namespace, pod, script string) {
	GinkgoHelper()
	_, err := execIn(ctx, namespace, pod, "sh", "-c", script)
	Expect(err).NotTo(HaveOccurred())
}

func setAccessPoint(ctx context.Context, o *unstructured.Unstructured, id string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec": {"accessPointID": %q}}`, id)
	Expect(k8s.Patch(ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// awaitBlocked waits until a SharedVolume names the only pod that blocks it, and checks
// that this stays so for 3 s.
func awaitBlocked(ctx context.Context, o *unstructured.Unstructured, pod string) {
	GinkgoHelper()
	blocked := func(g Gomega, o *unstructured.Unstructured) {
		pods, _, _ := unstructured.NestedStringSlice(o.Object, "status", "blockedBy", "pods")
		count, _, _ := unstructured.NestedInt64(o.Object, "status", "blockedBy", "count")
		g.Expect(pods).To(Equal([]string{pod}))
		g.Expect(count).To(BeEquivalentTo(1))
		ready := conditionOf(o, "Ready")
		g.Expect(ready.status).To(Equal("False"))
		g.Expect(ready.message).To(ContainSubstring(pod))
	}
	awaitWithin(ctx, patience, o.GetKind(), o.GetNamespace(), o.GetName(), blocked)
	Consistently(func(g Gomega) {
		found := o.DeepCopy()
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(o), found)).To(Succeed())
		blocked(g, found)
	}).WithContext(ctx).WithTimeout(3 * time.Second).Should(Succeed())
}

func textOf(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

func claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// missing reports whether an object does not exist.
func missing(ctx context.Context, o client.Object) (bool, error) {
	err := k8s.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}
