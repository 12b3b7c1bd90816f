package efs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// FileSystem is a file system that should exist. Cluster and UID identify its
// SharedFileSystem, and Name is its name. Known is the ID of a managed one that was created
// before: no other one is created or deleted then.
type FileSystem struct {
	Cluster, UID, Name, Known string
	Spec                      storagev1.SharedFileSystemSpec
}

var errGone = errors.New("is not in this region")

// owner has the token and tags of the file system, which are those of an access point.
func (f FileSystem) owner() AccessPoint {
	return AccessPoint{FileSystem: string(f.Spec.FileSystemID), Cluster: f.Cluster, OwnerUID: f.UID, Owner: f.Name}
}

// FileSystemState is what EFS says about a file system.
type FileSystemState struct {
	FileSystemID, State string
	SizeBytes           int64
	MountTargets        []storagev1.MountTargetState
}

// EnsureFileSystem returns the state of a file system. It creates a managed one, and its
// mount targets.
func (c *Connector) EnsureFileSystem(ctx context.Context, account storagev1.AWS, f FileSystem) (state FileSystemState, err error) {
	_, err = c.patient(account, f.UID, func() (string, error) {
		call := caller{ctx, c.connect(account), f.owner()}
		found, err := call.fileSystem(f.Known)
		switch {
		case errors.Is(err, errGone):
			err = engine.Fail(storagev1.ReasonAWSRefused, fmt.Errorf("%w: correct spec.aws of SharedVolumeDriver cluster; if somebody has deleted the file system, delete this SharedFileSystem and create another", err))
		case err == nil && found == nil:
			found, err = call.createFileSystem(f.Spec.Managed)
		}
		if err != nil {
			return "", err
		}
		state, err = call.observe(found, f.Spec.Managed)
		return "", err
	})
	return state, err
}

// fileSystem finds the existing file system by its ID, or the managed one by the known ID or
// else by its token; nil if it does not exist.
func (c caller) fileSystem(known string) (*types.FileSystemDescription, error) {
	in, id := &efs.DescribeFileSystemsInput{CreationToken: c.wanted.token()}, cmp.Or(c.wanted.FileSystem, known)
	if id != "" {
		in = &efs.DescribeFileSystemsInput{FileSystemId: &id}
	}
	out, err := c.api.DescribeFileSystems(c.ctx, in)
	var missing *types.FileSystemNotFound
	gone := errors.As(err, &missing) || err == nil && len(out.FileSystems) == 0
	switch {
	case gone && id == "":
		return nil, nil
	case gone && id == known:
		return nil, fmt.Errorf("file system %s %w", id, errGone)
	case err != nil:
		return nil, c.explain("DescribeFileSystems", err)
	}
	found := out.FileSystems[0]
	tags := types.AccessPointDescription{FileSystemId: aws.String(""), Tags: found.Tags}
	if c.wanted.FileSystem == "" && !c.wanted.belongs(tags) {
		return nil, engine.Fail(engine.ReasonConflict, fmt.Errorf("file system %s has the tags of another owner: the operator neither uses nor deletes it; restore its tags", *found.FileSystemId)) //nolint:err113 // only a condition shows it
	}
	return &found, nil
}

// createFileSystem is tried once, like create.
func (c caller) createFileSystem(managed *storagev1.ManagedFileSystem) (*types.FileSystemDescription, error) {
	in := &efs.CreateFileSystemInput{
		CreationToken: c.wanted.token(), Tags: c.wanted.tags(), Encrypted: new(managed.Encryption != storagev1.SwitchDisabled), Backup: new(managed.Backup != storagev1.SwitchDisabled),
		PerformanceMode: types.PerformanceMode(managed.PerformanceMode), ThroughputMode: types.ThroughputMode(managed.ThroughputMode),
	}
	if managed.KMSKeyID != "" {
		in.KmsKeyId = &managed.KMSKeyID
	}
	_, err := c.api.CreateFileSystem(c.ctx, in, func(o *efs.Options) { o.RetryMaxAttempts = 1 })
	var exists *types.FileSystemAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return nil, c.explain("CreateFileSystem", err)
	}
	found, err := c.fileSystem("")
	if err == nil && found == nil {
		err = engine.Fail(engine.ReasonProgressing, errors.New("EFS does not show the new file system yet")) //nolint:err113 // only a condition shows it
	}
	return found, err
}

// observe reads the mount targets, and creates missing ones of a managed file system.
func (c caller) observe(found *types.FileSystemDescription, managed *storagev1.ManagedFileSystem) (FileSystemState, error) {
	state := FileSystemState{FileSystemID: *found.FileSystemId, State: string(found.LifeCycleState)}
	if found.SizeInBytes != nil {
		state.SizeBytes = found.SizeInBytes.Value
	}
	c.wanted.FileSystem = state.FileSystemID // for messages
	if found.LifeCycleState != types.LifeCycleStateAvailable && found.LifeCycleState != types.LifeCycleStateUpdating {
		return state, engine.Fail(engine.ReasonProgressing, fmt.Errorf("file system %s is %s", state.FileSystemID, state.State)) //nolint:err113 // only a condition shows it
	}
	targets, err := c.mountTargets(state.FileSystemID)
	if err != nil {
		return state, err
	}
	var waits error
	for _, target := range targets {
		state.MountTargets = append(state.MountTargets, storagev1.MountTargetState{
			AvailabilityZone: aws.ToString(target.AvailabilityZoneName), SubnetID: *target.SubnetId, State: string(target.LifeCycleState),
		})
		if managed != nil && target.LifeCycleState != types.LifeCycleStateAvailable {
			waits = engine.Fail(engine.ReasonProgressing, fmt.Errorf("the mount target in subnet %s is %s", *target.SubnetId, target.LifeCycleState)) //nolint:err113 // only a condition shows it
		}
	}
	slices.SortFunc(state.MountTargets, func(a, b storagev1.MountTargetState) int {
		return strings.Compare(a.AvailabilityZone, b.AvailabilityZone)
	})
	if managed == nil {
		return state, nil
	}
	for _, wanted := range managed.MountTargets {
		if slices.ContainsFunc(targets, func(t types.MountTargetDescription) bool { return *t.SubnetId == wanted.SubnetID }) {
			continue
		}
		_, err := c.api.CreateMountTarget(c.ctx, &efs.CreateMountTargetInput{FileSystemId: &state.FileSystemID, SubnetId: &wanted.SubnetID, SecurityGroups: wanted.SecurityGroupIDs},
			func(o *efs.Options) { o.RetryMaxAttempts = 1 })
		if err != nil {
			return state, c.explain("CreateMountTarget", err)
		}
		waits = engine.Fail(engine.ReasonProgressing, fmt.Errorf("a mount target in subnet %s was created", wanted.SubnetID)) //nolint:err113 // only a condition shows it
	}
	return state, waits
}

func (c caller) mountTargets(id string) ([]types.MountTargetDescription, error) {
	out, err := c.api.DescribeMountTargets(c.ctx, &efs.DescribeMountTargetsInput{FileSystemId: &id, MaxItems: new(int32(100))})
	if err != nil {
		return nil, c.explain("DescribeMountTargets", err)
	}
	return out.MountTargets, nil
}

// RemoveFileSystem deletes a managed file system: first its mount targets, and when EFS has
// deleted them the file system with its files. inUse returns an error for the ID of a file
// system that is in use.
func (c *Connector) RemoveFileSystem(ctx context.Context, account storagev1.AWS, f FileSystem, inUse func(id string) error) error {
	_, err := c.patient(account, f.UID+" removed", func() (string, error) {
		return "", caller{ctx, c.connect(account), f.owner()}.removeFileSystem(f.Known, inUse)
	})
	return err
}

func (c caller) removeFileSystem(known string, inUse func(id string) error) error {
	found, err := c.fileSystem(known)
	if errors.Is(err, errGone) {
		return engine.Abandon("%s: if it is in another region or account, delete it there", err)
	}
	if err != nil || found == nil || found.LifeCycleState == types.LifeCycleStateDeleting || found.LifeCycleState == types.LifeCycleStateDeleted {
		return err
	}
	c.wanted.FileSystem = *found.FileSystemId // for messages
	if err := inUse(*found.FileSystemId); err != nil {
		return err
	}
	targets, err := c.mountTargets(*found.FileSystemId)
	if err != nil {
		return err
	}
	for _, target := range targets {
		_, err := c.api.DeleteMountTarget(c.ctx, &efs.DeleteMountTargetInput{MountTargetId: target.MountTargetId})
		var missing *types.MountTargetNotFound
		if err != nil && !errors.As(err, &missing) {
			return c.explain("DeleteMountTarget", err)
		}
	}
	if len(targets) > 0 {
		return engine.Fail(engine.ReasonProgressing, fmt.Errorf("EFS deletes the mount targets of file system %s", *found.FileSystemId)) //nolint:err113 // only a condition shows it
	}
	_, err = c.api.DeleteFileSystem(c.ctx, &efs.DeleteFileSystemInput{FileSystemId: found.FileSystemId})
	var missing *types.FileSystemNotFound
	if errors.As(err, &missing) {
		return nil
	}
	return c.explain("DeleteFileSystem", err)
}
