// Package filesystem shows an EFS file system, or creates it.
package filesystem

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedfilesystems,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedfilesystems/status,verbs=patch

// checkPeriod is the time after which the state is read again, with two calls.
const checkPeriod = 10 * time.Minute

// observedState is the key of the state in what the stage observes.
const observedState = "state"

// nfsDriver is the name of the CSI driver for NFS servers.
const nfsDriver = "nfs.csi.k8s.io"

// Service is New with the connection to AWS.
var Service = New(efs.NewConnector())

// New returns the stages of a SharedFileSystem, which has no children.
func New(aws *efs.Connector) engine.Service[*storagev1.SharedFileSystem] {
	calls := calls{aws}
	return engine.Service[*storagev1.SharedFileSystem]{
		Name: "shared-file-system",
		Stages: []engine.Stage[*storagev1.SharedFileSystem]{{
			Condition: storagev1.ConditionFileSystemReady, Needs: account, Do: calls.ensure, Report: reportState,
			Every: func(*storagev1.SharedFileSystem) time.Duration { return checkPeriod },
		}},
		Teardown: []engine.Stage[*storagev1.SharedFileSystem]{{Condition: "FileSystemRemoved", Needs: accountAndUsers, Do: calls.remove}},
	}
}

func account(*storagev1.SharedFileSystem) []engine.Need { return volume.Account() }

var (
	users   = engine.Labelled[*storagev1.SharedVolume](nil)
	volumes = engine.Labelled[*corev1.PersistentVolume](nil)
)

// accountAndUsers reads the users only for the deletion of a file system.
func accountAndUsers(cr *storagev1.SharedFileSystem) []engine.Need {
	if !deletes(cr) {
		return nil
	}
	nothing := func(client.Object) any { return nil }
	return append(volume.Account(), users.Counting(nothing), volumes.Counting(nothing))
}

func deletes(cr *storagev1.SharedFileSystem) bool {
	return cr.Spec.Managed != nil && cr.Spec.Managed.DeletionPolicy == storagev1.DeletionDelete
}

type calls struct{ aws *efs.Connector }

func describe(cr *storagev1.SharedFileSystem, in engine.Inputs) efs.FileSystem {
	return efs.FileSystem{Cluster: in.Cluster(), UID: string(cr.UID), Name: cr.Name, Known: cr.Status.FileSystemID, Spec: cr.Spec}
}

func (c calls) ensure(ctx context.Context, cr *storagev1.SharedFileSystem, in engine.Inputs) (engine.Observed, error) {
	configured, err := volume.Configured(in)
	if err != nil {
		return nil, err
	}
	if cr.Spec.Managed != nil && !isBegun(cr) {
		return nil, volume.Begin(cr, storagev1.ConditionFileSystemReady, "a file system")
	}
	state, err := c.aws.EnsureFileSystem(ctx, *configured, describe(cr, in))
	show(cr, state) // also after an error
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(state)
	return engine.Observed{observedState: string(encoded)}, err
}

func show(cr *storagev1.SharedFileSystem, state efs.FileSystemState) {
	if state.FileSystemID != "" {
		cr.Status.FileSystemID, cr.Status.State, cr.Status.SizeBytes, cr.Status.MountTargets = state.FileSystemID, state.State, state.SizeBytes, state.MountTargets
	}
}

// remove deletes a managed file system with deletionPolicy Delete.
func (c calls) remove(ctx context.Context, cr *storagev1.SharedFileSystem, in engine.Inputs) (engine.Observed, error) {
	if !deletes(cr) || !isBegun(cr) {
		return nil, nil
	}
	left := "file system " + cmp.Or(cr.Status.FileSystemID, "with the tag asterism.dev/owner-uid="+string(cr.UID)+", if there is one")
	configured, err := volume.Configured(in)
	switch {
	case err == nil:
		err = c.aws.RemoveFileSystem(ctx, *configured, describe(cr, in), func(id string) error { return inUse(id, in) })
	case cr.Status.FileSystemID == "":
		err = engine.Abandon("%s: %s", left, err)
	}
	return nil, volume.Abandonable(cr, left, err)
}

// isBegun says whether AWS may have a managed file system of the SharedFileSystem.
func isBegun(cr *storagev1.SharedFileSystem) bool {
	return cr.Status.FileSystemID != "" || volume.HasBegun(cr, storagev1.ConditionFileSystemReady)
}

// inUse returns an error while the spec or the present volume of a SharedVolume, or another
// PersistentVolume, has the file system.
func inUse(id string, in engine.Inputs) error {
	for _, user := range users.In(in) {
		if id == string(user.Spec.FileSystemID) || id == user.Status.FileSystemID {
			return engine.WaitAs(storagev1.ReasonInUse, "SharedVolumes use file system %s: delete them", id)
		}
	}
	for _, user := range volumes.In(in) {
		if uses(user, id) {
			return engine.WaitAs(storagev1.ReasonInUse, "PersistentVolume %s uses file system %s: delete it", user.Name, id)
		}
	}
	return nil
}

// uses says whether a volume of any owner mounts the file system: with the CSI driver, or with
// NFS from a DNS name of the file system, which has the ID or a zone and the ID before the domain.
func uses(found *corev1.PersistentVolume, id string) bool {
	mounted, _ := volume.Mounted(found)
	return mounted == id || slices.Contains(strings.Split(strings.ToLower(nfsServer(found)), "."), id)
}

// nfsServer returns the NFS server of a volume, "" for none: of the kind nfs, or of the CSI driver
// for NFS.
func nfsServer(found *corev1.PersistentVolume) string {
	switch {
	case found.Spec.NFS != nil:
		return found.Spec.NFS.Server
	case found.Spec.CSI != nil && found.Spec.CSI.Driver == nfsDriver:
		return found.Spec.CSI.VolumeAttributes["server"]
	}
	return ""
}

// reportState shows the state if the write after the call has failed.
func reportState(cr *storagev1.SharedFileSystem, in engine.Inputs) {
	var state efs.FileSystemState
	if cr.Status.FileSystemID == "" && json.Unmarshal([]byte(in.Observed(storagev1.ConditionFileSystemReady)[observedState]), &state) == nil {
		show(cr, state)
	}
}
