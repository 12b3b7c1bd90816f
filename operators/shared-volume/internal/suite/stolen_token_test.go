package suite

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// thief has a stolen token of the operator's account.
type thief struct {
	*scene
	stolen client.Client
}

func (a thief) apply(object client.Object) error {
	return a.stolen.Patch(a.ctx, object, client.Apply, client.FieldOwner("thief"), client.ForceOwnership) //nolint:staticcheck // typed objects suffice
}

func (a thief) merge(object client.Object, patch string) error {
	return a.stolen.Patch(a.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// exists creates an object of another owner, which is deleted after the test.
func (a thief) exists(object client.Object) {
	a.t.Helper()
	a.must(a.client.Create(a.ctx, object))
	a.t.Cleanup(func() { a.must(client.IgnoreNotFound(a.client.Delete(context.Background(), object))) })
}

// attacksOnStorage returns the answers to attacks on the claims, volumes, nodes and rights of
// others.
func (a thief) attacksOnStorage() map[string]error {
	a.t.Helper()
	all := map[string]error{}
	for _, attacks := range []map[string]error{a.attacksOnClaims(), a.attacksOnVolumes(), a.newVolumes(), a.attacksOnNodes(), a.attacksOnSharedVolumes()} {
		maps.Copy(all, attacks)
	}
	return all
}

const ownerLabel = "asterism.dev/owner-uid"

func (a thief) attacksOnClaims() map[string]error {
	other := a.foreignClaim("data-mariadb-0", "")
	*other.Spec.StorageClassName = "gp3"
	sameClass := a.foreignClaim("same-class", "")
	sameClass.Labels = map[string]string{ownerLabel: "1"}
	a.exists(other)
	a.exists(sameClass)
	claim := func(name string) *corev1.PersistentVolumeClaim {
		claim := a.foreignClaim(name, "")
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		return claim
	}
	otherClass := claim("mine")
	*otherClass.Spec.StorageClassName = "gp3"
	return map[string]error{
		"label a claim of another class":                          a.merge(other.DeepCopy(), `{"metadata":{"labels":{"`+ownerLabel+`":"1"}}}`),
		"delete a claim of another class":                         a.stolen.Delete(a.ctx, other),
		"delete a claim that no SharedVolume has, with its label": a.stolen.Delete(a.ctx, sameClass),
		"create a claim of another class":                         a.apply(otherClass),
		"create a claim of no SharedVolume":                       a.apply(claim("mine-too")),
	}
}

// efsVolume returns a volume like those of SharedVolumes, for the access point fsap-00000001.
func efsVolume(name string) *corev1.PersistentVolume {
	volume := hostVolume()
	volume.Name = name
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Spec.StorageClassName = "shared-volume"
	volume.Spec.HostPath = nil
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com", VolumeHandle: "fs-00000042::fsap-00000001"}
	return volume
}

func (a thief) attacksOnVolumes() map[string]error {
	local, dynamic, squatted := hostVolume(), efsVolume("pvc-00000000-0000-4000-8000-000000000001"), efsVolume("sv-0123456789abcde0")
	local.Name = a.namespace + "-local"
	squatted.Spec.CSI.Driver = "ebs.csi.aws.com"
	for _, volume := range []*corev1.PersistentVolume{local, dynamic, squatted} {
		a.exists(volume)
	}
	return map[string]error{
		"reserve a volume of a node":        a.merge(local.DeepCopy(), `{"spec":{"claimRef":{"namespace":"default","name":"mine"}}}`),
		"change a volume of EFS":            a.merge(dynamic.DeepCopy(), `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`),
		"delete a volume of a node":         a.stolen.Delete(a.ctx, local),
		"delete a volume of EFS":            a.stolen.Delete(a.ctx, dynamic),
		"delete a volume of another driver": a.stolen.Delete(a.ctx, squatted),
	}
}

func (a thief) newVolumes() map[string]error {
	deleted, directory, secret, named := efsVolume("sv-0123456789abcde1"), efsVolume("sv-0123456789abcde2"), efsVolume("sv-0123456789abcde3"), efsVolume("mine")
	deleted.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	directory.Spec.CSI.VolumeHandle = "fs-00000042:/"
	secret.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "kube-system", Name: "password"}
	attacks := map[string]error{
		"create a volume whose files are deleted":                  a.apply(deleted),
		"create a volume with the whole file system":               a.apply(directory),
		"create a volume that passes a Secret to the driver's pod": a.apply(secret),
		"create a volume of another name":                          a.apply(named),
	}
	for _, volume := range []*corev1.PersistentVolume{deleted, directory, secret, named} {
		a.t.Cleanup(func() { a.must(client.IgnoreNotFound(a.client.Delete(context.Background(), volume))) })
	}
	return attacks
}

// attacksOnNodes contains the attack on the driver's role, which gives rights to nodes.
func (a thief) attacksOnNodes() map[string]error {
	node := &corev1.Node{}
	node.GenerateName, node.Labels = a.namespace+"-", map[string]string{nodeOfSuite: "true"}
	a.exists(node)
	role := &rbacv1.ClusterRole{ObjectMeta: named("", "asterism-efs-csi-node")}
	labelled := roleFor("nodes")
	labelled.Labels = map[string]string{"example.org/aggregate-to-everybody": "true"}
	return map[string]error{
		"cordon a node": a.merge(node, `{"spec":{"unschedulable":true}}`),
		"add the driver's role to those of editors": a.merge(role, `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-edit":"true"}}}`),
		"add the driver's role to any role":         a.apply(labelled),
	}
}

func (a thief) attacksOnSharedVolumes() map[string]error {
	user := a.shared("images")
	a.t.Cleanup(func() { a.must(client.IgnoreNotFound(a.client.Delete(context.Background(), user))) })
	system := &storagev1.SharedFileSystem{ObjectMeta: named("", a.namespace)}
	system.Spec.Managed = &storagev1.ManagedFileSystem{MountTargets: []storagev1.MountTarget{{SubnetID: "subnet-00000001"}}}
	a.exists(system)
	cluster := cluster()
	a.exists(cluster)
	return map[string]error{
		"change the access point of a SharedVolume": a.merge(user.DeepCopy(), `{"spec":{"accessPointID":"fsap-00000002"}}`),
		"label a SharedVolume":                      a.merge(user.DeepCopy(), `{"metadata":{"labels":{"app":"mine"}}}`),
		"delete the files with a SharedFileSystem":  a.merge(system, `{"spec":{"managed":{"deletionPolicy":"Delete"}}}`),
		"remove the driver":                         a.merge(cluster, `{"spec":{"managementState":"Removed"}}`),
	}
}
