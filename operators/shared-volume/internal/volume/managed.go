package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs"
)

// checkPeriod is the time after which an access point is looked up again: one call per
// access point. Nothing else calls AWS at rest.
const checkPeriod = 30 * time.Minute

// Keys in what the stage observes: the ID, and the ID in the status that it replaces.
const (
	observedID       = "id"
	observedReplaced = "replaces"
)

// Default owners of files are from firstUser to twice of it.
const firstUser = 1_000_000_000

// Lengths of the parts of a directory, of which EFS allows 100 characters: the root of the
// grant has 36, the namespace with its hash 34, the name 30.
const (
	maxNamespacePart = 20
	maxNamePart      = 29
	hashLength       = 12
)

// isManaged says whether the operator creates the access point.
func isManaged(cr *storagev1.SharedVolume) bool { return cr.Spec.AccessPointID == "" }

// accessPoint returns the access point of the spec, or the managed one; "" before it exists.
func accessPoint(cr *storagev1.SharedVolume) storagev1.AccessPointID {
	return cmp.Or(cr.Spec.AccessPointID, storagev1.AccessPointID(cr.Status.ManagedAccessPointID))
}

// withinLimit waits, without a call to AWS, until the namespace may have another access
// point. Exact is only the count of the access points themselves.
func withinLimit(cr *storagev1.SharedVolume, in engine.Inputs) error {
	granted := managedGrant(cr, in)
	if granted == nil || cr.Status.ManagedAccessPointID != "" {
		return nil
	}
	count := 0
	for _, other := range siblings.In(in) {
		if other.UID != cr.UID && other.Spec.FileSystemID == cr.Spec.FileSystemID && other.Status.ManagedAccessPointID != "" {
			count++
		}
	}
	if most := int(granted.MaxPerNamespace); count >= most {
		return efs.LimitReached(string(cr.Spec.FileSystemID), most)
	}
	return nil
}

// managedGrant returns the description of the access point that the operator creates, from
// the first policy by name; nil if the spec has an access point.
func managedGrant(cr *storagev1.SharedVolume, in engine.Inputs) *storagev1.ManagedAccessPoints {
	namespace, _ := engine.Get[*corev1.Namespace](in, cr.Namespace)
	if !isManaged(cr) || namespace == nil {
		return nil
	}
	for _, policy := range policyList.In(in) {
		if found := grantOf(policy, namespace, cr.Spec.FileSystemID, ""); found != nil && suffices(found.Access, cr) {
			return found.Managed
		}
	}
	return nil
}

// account is an input only of a SharedVolume with a managed access point.
func account(cr *storagev1.SharedVolume) []engine.Need {
	if !isManaged(cr) {
		return nil
	}
	return Account()
}

// Account returns the needs of calls to AWS.
func Account() []engine.Need {
	return []engine.Need{engine.Cluster(), engine.Existing(theDriver()).Counting(func(obj client.Object) any {
		return obj.(*storagev1.SharedVolumeDriver).Spec.AWS //nolint:forcetypeassert // of theDriver
	}).Optional()}
}

func checkEvery(cr *storagev1.SharedVolume) time.Duration {
	if !isManaged(cr) {
		return 0
	}
	return checkPeriod
}

var (
	// anyVolumes start no pass: the deletion of many SharedVolumes deletes as many volumes.
	anyVolumes = engine.Sampled[*corev1.PersistentVolume](0)
	// wakingVolumes are anyVolumes of which each change starts a pass.
	wakingVolumes = engine.Labelled[*corev1.PersistentVolume](nil)
)

// accountAndVolumes reads the volumes of all owners, and waits for their changes while one of
// them uses the access point.
func accountAndVolumes(cr *storagev1.SharedVolume) []engine.Need {
	if !isManaged(cr) || !isBegun(cr) {
		return nil
	}
	ready := meta.FindStatusCondition(cr.Status.Conditions, commonv1.ConditionReady)
	if ready != nil && ready.Reason == storagev1.ReasonInUse {
		return append(Account(), wakingVolumes.Counting(nothing))
	}
	return append(Account(), anyVolumes.Need)
}

// unused returns an error while a volume of another owner mounts the access point. It does not
// ask for the specs of SharedVolumes, with which any tenant could prevent the deletion. Whoever
// reads the message may not know the other owner.
func unused(cr *storagev1.SharedVolume, id string, in engine.Inputs) error {
	for _, found := range slices.Concat(anyVolumes.In(in), wakingVolumes.In(in)) {
		if _, mounted := Mounted(found); id != "" && mounted == id && !proven(cr, found) {
			return engine.WaitAs(storagev1.ReasonInUse, "another PersistentVolume uses access point %s: ask an administrator of the cluster to delete the PersistentVolume with this ID in its volumeHandle, or its SharedVolume", id)
		}
	}
	return nil
}

// managed has the calls to AWS.
type managed struct{ aws *efs.Connector }

// ensure creates the access point, or finds it.
func (m managed) ensure(ctx context.Context, cr *storagev1.SharedVolume, in engine.Inputs) (engine.Observed, error) {
	if !isManaged(cr) {
		return nil, nil
	}
	cluster, err := Configured(in)
	if err != nil {
		return nil, fmt.Errorf("%w, or create another SharedVolume with accessPointID", err)
	}
	granted := managedGrant(cr, in)
	if granted == nil {
		return nil, engine.Wait("no policy grants a managed access point any more")
	}
	if !isBegun(cr) {
		return nil, Begin(cr, storagev1.ConditionAccessPointReady, "an access point")
	}
	namespace, _ := engine.Get[*corev1.Namespace](in, cr.Namespace)
	point := describe(cr, namespace.UID, in.Cluster(), granted)
	known := cr.Status.ManagedAccessPointID
	id, err := m.aws.Ensure(ctx, *cluster, point, known)
	cr.Status.ManagedAccessPointID = cmp.Or(id, known) // also after an error
	observed := engine.Observed{observedID: id}
	if known != "" && known != id {
		observed[observedReplaced] = known
	}
	return observed, err
}

// remove deletes the access point when no claim and no volume of any owner uses it any more.
func (m managed) remove(ctx context.Context, cr *storagev1.SharedVolume, in engine.Inputs) (engine.Observed, error) {
	if !isManaged(cr) || !isBegun(cr) {
		return nil, nil
	}
	id := cr.Status.ManagedAccessPointID
	left := fmt.Sprintf("access point %s of file system %s", cmp.Or(id, "with the tag asterism.dev/owner-uid="+string(cr.UID)+", if there is one,"), cr.Spec.FileSystemID)
	inUse := func(id string) error { return unused(cr, id, in) }
	cluster, err := Configured(in)
	switch {
	case err == nil:
		if err = inUse(id); err == nil { // without a call
			err = m.aws.Remove(ctx, *cluster, describe(cr, "", in.Cluster(), nil), id, inUse)
		}
	case id == "":
		err = engine.Abandon("%s: %s", left, err)
	}
	return nil, Abandonable(cr, left, err)
}

// isBegun says whether AWS may have an access point of the SharedVolume. Without a record, the
// deletion makes no call, so that nobody learns about a file system that no policy grants.
func isBegun(cr *storagev1.SharedVolume) bool {
	return cr.Status.ManagedAccessPointID != "" || HasBegun(cr, storagev1.ConditionAccessPointReady)
}

// Begin writes a record of the stage, and returns the outcome of the pass. The next pass makes the
// first call that creates something in AWS: its answer may get lost.
func Begin(cr engine.Object, stage, creates string) error {
	status := cr.Common()
	status.Completed = append(status.Completed, commonv1.CompletedStage{Stage: stage, Inputs: "outdated"})
	return engine.Fail(engine.ReasonProgressing, errors.New("the operator is about to create "+creates)) //nolint:err113 // only a condition shows it
}

// HasBegun says whether the status has a record of the stage.
func HasBegun(cr engine.Object, stage string) bool {
	return slices.ContainsFunc(cr.Common().Completed, func(c commonv1.CompletedStage) bool { return c.Stage == stage })
}

// Abandonable returns the outcome of a removal from AWS, which the annotation ends. If the
// removal fails, the message names the annotation and what is left behind.
func Abandonable(cr client.Object, left string, err error) error {
	switch {
	case err != nil && cr.GetAnnotations()[commonv1.AnnotationAbandon] == "true":
		return engine.Abandon("%s: %s", left, err)
	case err == nil || engine.Reason(err) == engine.ReasonProgressing:
		return err
	}
	return fmt.Errorf("%w; the annotation %s=true ends the deletion and leaves %s", err, commonv1.AnnotationAbandon, left)
}

// Configured returns the account of AWS, which Account has found.
func Configured(in engine.Inputs) (*storagev1.AWS, error) {
	cluster, _ := engine.Get[*storagev1.SharedVolumeDriver](in, storagev1.SharedVolumeDriverName)
	if cluster == nil || cluster.Spec.AWS == nil {
		return nil, engine.WaitAs(storagev1.ReasonAWSNotConfigured, "the operator has no region of AWS: ask an administrator of the cluster to set spec.aws of SharedVolumeDriver %s", storagev1.SharedVolumeDriverName)
	}
	return cluster.Spec.AWS, nil
}

// describe returns the access point of a SharedVolume. Users choose no part of a path except
// the name of the SharedVolume, which has no slash: no directory contains another, and none
// belongs to two namespaces.
func describe(cr *storagev1.SharedVolume, namespaceUID types.UID, cluster string, granted *storagev1.ManagedAccessPoints) efs.AccessPoint {
	point := efs.AccessPoint{
		FileSystem: string(cr.Spec.FileSystemID), Cluster: cluster, NamespaceUID: string(namespaceUID),
		OwnerUID: string(cr.UID), Owner: cr.Namespace + "/" + cr.Name,
	}
	if granted == nil {
		return point
	}
	name := cr.Name
	if len(name) > maxNamePart {
		name = name[:maxNamePart-hashLength-1] + "-" + engine.Hash(name)[:hashLength]
	}
	part := cr.Namespace[:min(len(cr.Namespace), maxNamespacePart)] + "-" + engine.Hash(cluster, namespaceUID)[:hashLength]
	point.Path = granted.RootDirectory + "/" + part + "/" + name
	point.Permissions, point.Max = granted.Permissions, int(granted.MaxPerNamespace)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(namespaceUID))
	point.UID = firstUser + int64(sum.Sum32())%firstUser
	point.GID = point.UID
	if user := granted.PosixUser; user != nil {
		point.UID, point.GID = user.UID, user.GID
	}
	return point
}

// reportAccessPoint copies the ID into the status, where later stages read it, if the write
// after the call has failed. An ID in the status that the call did not replace is newer: the call
// that has found it failed, and the stage observes what the call before has found. Only the
// operator may write the status.
func reportAccessPoint(cr *storagev1.SharedVolume, in engine.Inputs) {
	observed := in.Observed(storagev1.ConditionAccessPointReady)
	if known := cr.Status.ManagedAccessPointID; known == "" || known == observed[observedReplaced] {
		cr.Status.ManagedAccessPointID = observed[observedID]
	}
}
