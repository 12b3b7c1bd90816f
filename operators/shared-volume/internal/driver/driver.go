// Package driver builds the objects of the CSI driver for EFS, unless the driver belongs to
// another owner.
package driver

import (
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/operator"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// Rules have resourceNames wherever names are fixed. config/rbac/admission.yaml restricts
// the contents of the objects.
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumedrivers,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumedrivers,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumedrivers/status,verbs=patch
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumedrivers/finalizers,verbs=update
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;serviceaccounts,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=asterism-efs-csi,verbs=create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=efs-csi-node-sa,verbs=create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,resourceNames=efs-csi-node,verbs=create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,resourceNames=asterism-efs-csi-node,verbs=create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers;storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers,resourceNames=efs.csi.aws.com,verbs=create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,resourceNames=shared-volume,verbs=create;patch;delete
// +kubebuilder:rbac:groups=security.openshift.io,resources=securitycontextconstraints,verbs=get;list;watch
// +kubebuilder:rbac:groups=security.openshift.io,resources=securitycontextconstraints,resourceNames=asterism-efs-csi-node,verbs=create;patch;delete
// The operator must have the rights that it grants to the driver's account, but
// config/rbac/admission.yaml does not let it write nodes:
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// fixtures are the manifests of objects without a rollout, in the order of their creation.
var fixtures = []string{"namespace", "serviceaccount", "clusterrole", "clusterrolebinding", "csidriver", "storageclass"}

const constraints = "securitycontextconstraints"

// namespaceName is the namespace of the driver's pods and their ServiceAccount.
const namespaceName = "asterism-efs-csi"

// grants are the kinds that give rights to the ServiceAccount of the driver by its name,
// also if another owner has created the account.
var grants = []string{"ClusterRoleBinding", "SecurityContextConstraints"}

// constraintsGVK is a kind that only OpenShift serves.
var constraintsGVK = securityv1.GroupVersion.WithKind("SecurityContextConstraints")

// New returns the stages of a SharedVolumeDriver whose pods run the images.
func New(images Images) engine.Service[*storagev1.SharedVolumeDriver] {
	return engine.Service[*storagev1.SharedVolumeDriver]{
		Name: "shared-volume-driver",
		Stages: []engine.Stage[*storagev1.SharedVolumeDriver]{
			{Condition: storagev1.ConditionDetected, Needs: csiDriver, Build: detected},
			{Condition: storagev1.ConditionInstalled, Needs: present, Build: installed},
			{Condition: storagev1.ConditionRolledOut, Needs: present, Build: func(cr *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
				return rolledOut(cr, in, images)
			}},
			{Condition: storagev1.ConditionVolumesOwned, Needs: volumesAndOwners, Build: withoutOrphans},
		},
		Teardown: []engine.Stage[*storagev1.SharedVolumeDriver]{
			{Condition: "SharedVolumesGone", Needs: users, Build: unused},
			{Condition: "Removed", Needs: present, Build: removed},
		},
		Report: report,
		Proof:  func(_ *storagev1.SharedVolumeDriver, child client.Object) bool { return fixed()[identify(child)] },
		Owns: []client.Object{
			&corev1.Namespace{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
			&kstoragev1.CSIDriver{}, &kstoragev1.StorageClass{}, &appsv1.DaemonSet{}, &securityv1.SecurityContextConstraints{},
		},
	}
}

// Confined is New with the ServiceAccounts and DaemonSets of the driver's namespace only.
func Confined(images Images) operator.Confined {
	return operator.Confined{
		Controller: New(images), Namespace: namespaceName,
		Kinds: []client.Object{&corev1.ServiceAccount{}, &appsv1.DaemonSet{}},
	}
}

func nothing(client.Object) any { return nil }

func csiDriver(*storagev1.SharedVolumeDriver) []engine.Need {
	object := &kstoragev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: volume.DriverName}}
	return []engine.Need{engine.Existing(object).Counting(nothing).Optional()}
}

func present(cr *storagev1.SharedVolumeDriver) []engine.Need {
	class := &kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: volume.StorageClassName}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName}}
	needs := append(csiDriver(cr), engine.Served(constraintsGVK).Optional(), engine.Children(),
		engine.Existing(class).Counting(nothing).Optional(), engine.Existing(namespace).Counting(nothing).Optional())
	if cr.Spec.ManagementState == storagev1.StateRemoved {
		needs = append(needs, users(cr)...)
	}
	return needs
}

// userList is needed only while the driver is to be removed.
var userList = engine.Labelled[*storagev1.SharedVolume](nil)

func users(*storagev1.SharedVolumeDriver) []engine.Need {
	return []engine.Need{userList.Counting(nothing)}
}

// foreign returns the CSIDriver of another owner, nil for none.
func foreign(in engine.Inputs) *kstoragev1.CSIDriver {
	found, ok := engine.Get[*kstoragev1.CSIDriver](in, volume.DriverName)
	if !ok || in.IsChild(found) {
		return nil
	}
	return found
}

// detected waits for the driver of another owner if managementState is Unmanaged.
func detected(cr *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	_, found := engine.Get[*kstoragev1.CSIDriver](in, volume.DriverName)
	if !found && cr.Spec.ManagementState == storagev1.StateUnmanaged {
		return nil, engine.Wait("CSIDriver %s does not exist: install the driver, or set spec.managementState to %s", volume.DriverName, storagev1.StateManaged)
	}
	return nil, nil
}

// installed builds all objects except the DaemonSet, because SharedVolumes must not depend
// on the rollout of the pods.
func installed(cr *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	switch cr.Spec.ManagementState {
	case storagev1.StateManaged:
		if foreign(in) == nil {
			return apply(in)
		}
	case storagev1.StateRemoved:
		return remove(cr, in)
	}
	return leave(in)
}

func rolledOut(cr *storagev1.SharedVolumeDriver, in engine.Inputs, images Images) ([]engine.Child, error) {
	if cr.Spec.ManagementState != storagev1.StateManaged || foreign(in) != nil {
		return keep(in), nil
	}
	object, err := daemonSet(cr.Spec, images, in.Served(constraintsGVK))
	if err != nil {
		return nil, err
	}
	return []engine.Child{engine.Unowned(object)}, nil
}

// apply builds the objects of fixtures, the namespace first. Some kinds are replaced,
// because most of their fields are immutable. A namespace of another owner is a conflict,
// and then the rights of its accounts are deleted.
func apply(in engine.Inputs) ([]engine.Child, error) {
	names := fixtures
	if in.Served(constraintsGVK) {
		names = append(names[:len(names):len(names)], constraints)
	}
	all := absent(misplaced(in))
	for _, name := range names {
		object, err := manifest(name)
		if err != nil {
			return nil, err
		}
		child := engine.Unowned(object)
		switch name {
		case "csidriver", "storageclass", "clusterrolebinding":
			child = engine.Replaced(child)
		}
		all = append(all, child)
	}
	return all, nil
}

// misplaced returns the children that give rights to accounts of the driver's namespace, if
// the namespace belongs to another owner.
func misplaced(in engine.Inputs) []client.Object {
	namespace, exists := engine.Get[*corev1.Namespace](in, namespaceName)
	if !exists || in.IsChild(namespace) {
		return nil
	}
	return slices.DeleteFunc(engine.ChildrenOf[client.Object](in), func(child client.Object) bool { return !slices.Contains(grants, identify(child).kind) })
}

// leave leaves the driver to another owner. The installed objects stay, because pods with
// mounted volumes need them. SharedVolumes need the StorageClass with every driver; a class
// of another owner with this name is used.
func leave(in engine.Inputs) ([]engine.Child, error) {
	_, exists := engine.Get[*kstoragev1.StorageClass](in, volume.StorageClassName)
	if exists {
		return keep(in), nil
	}
	object, err := manifest("storageclass")
	return append(keep(in), engine.Unowned(object)), err
}

// keep leaves the children unchanged, and deletes misplaced rights.
func keep(in engine.Inputs) []engine.Child {
	deleted := misplaced(in)
	all := absent(deleted)
	for _, child := range engine.ChildrenOf[client.Object](in) {
		if !slices.Contains(deleted, child) {
			all = append(all, engine.Kept(named(child)))
		}
	}
	return all
}

// named returns the identity of a child, which suffices to keep or delete the child.
func named(child client.Object) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: child.GetNamespace(), Name: child.GetName()}}
	object.SetGroupVersionKind(child.GetObjectKind().GroupVersionKind())
	return object
}

// remove deletes the installed objects when no SharedVolume exists.
func remove(cr *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	remaining := engine.ChildrenOf[client.Object](in)
	if len(remaining) == 0 {
		return nil, engine.WaitAs(storagev1.ReasonRemoved, "nothing is installed, because spec.managementState is %s", storagev1.StateRemoved)
	}
	if _, err := unused(cr, in); err != nil {
		return nil, err
	}
	return absent(remaining), nil
}

func absent(children []client.Object) []engine.Child {
	var all []engine.Child
	for _, child := range children {
		all = append(all, engine.Absent(named(child)))
	}
	return all
}

// unused waits for the deletion of all SharedVolumes. The status names the SharedVolumes;
// the message does not, because it becomes an event that many users may read.
func unused(_ *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	switch count := len(userList.In(in)); count {
	case 0:
		return nil, nil
	case 1:
		return nil, engine.WaitAs(storagev1.ReasonInUse, "the driver is used by a SharedVolume: delete the SharedVolume in status.usedBy")
	default:
		return nil, engine.WaitAs(storagev1.ReasonInUse, "the driver is used by %d SharedVolumes: delete the SharedVolumes in status.usedBy", count)
	}
}

// removed deletes the installed objects. If managementState is Unmanaged, only the
// StorageClass of SharedVolumes is deleted.
func removed(cr *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.ManagementState == storagev1.StateUnmanaged {
		var classes []client.Object
		for _, class := range engine.ChildrenOf[*kstoragev1.StorageClass](in) {
			classes = append(classes, class)
		}
		return absent(classes), nil
	}
	return absent(engine.ChildrenOf[client.Object](in)), nil
}
