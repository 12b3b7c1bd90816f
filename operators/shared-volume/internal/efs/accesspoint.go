package efs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// Tags of an access point. The UIDs prove the owner.
const (
	tagCluster   = "asterism.dev/cluster"
	tagNamespace = "asterism.dev/namespace-uid"
	tagOwner     = "asterism.dev/owner-uid"
	tagOwnerName = "asterism.dev/owner"
)

// maxTag is the number of characters of a tag's value.
const maxTag = 256

// maxPages bounds a list, and pageSize is the number of access points in a page.
const (
	maxPages = 200
	pageSize = 100
)

// AccessPoint is an access point that should exist.
type AccessPoint struct {
	FileSystem string
	// Cluster, NamespaceUID and OwnerUID identify the SharedVolume; Owner is its name in
	// clear text.
	Cluster, NamespaceUID, OwnerUID, Owner string
	// Path, Permissions, UID and GID are those of the directory and its files.
	Path, Permissions string
	UID, GID          int64
	// Max is the number of access points of the namespace.
	Max int
}

// token makes AWS create one access point only, if an answer is lost.
func (a AccessPoint) token() *string { return new("asterism-" + a.OwnerUID) }

func (a AccessPoint) tags() []types.Tag {
	tag := func(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }
	return []types.Tag{
		tag("Name", a.Owner[:min(len(a.Owner), maxTag)]), tag(tagOwnerName, a.Owner[:min(len(a.Owner), maxTag)]),
		tag(tagCluster, a.Cluster), tag(tagNamespace, a.NamespaceUID), tag(tagOwner, a.OwnerUID),
	}
}

// belongs says whether a found access point belongs to the SharedVolume.
func (a AccessPoint) belongs(found types.AccessPointDescription) bool {
	return *found.FileSystemId == a.FileSystem && tagOf(found, tagCluster) == a.Cluster && tagOf(found, tagOwner) == a.OwnerUID
}

func tagOf(found types.AccessPointDescription, key string) string {
	for _, tag := range found.Tags {
		if tag.Key != nil && *tag.Key == key && tag.Value != nil {
			return *tag.Value
		}
	}
	return ""
}

// Ensure returns the ID of the access point, and creates it if it does not exist. The ID that
// is known saves the search. An access point that cannot be used yet has an ID and an error.
func (c *Connector) Ensure(ctx context.Context, account storagev1.AWS, a AccessPoint, known string) (string, error) {
	return c.patient(account, a.OwnerUID, func() (string, error) { return c.ensure(ctx, account, a, known) })
}

func (c *Connector) ensure(ctx context.Context, account storagev1.AWS, a AccessPoint, known string) (string, error) {
	call := caller{ctx, c.connect(account), a}
	found, err := call.byID(known)
	if err != nil || found != nil {
		return call.available(found, err)
	}
	unlock, err := c.lock(ctx, a.NamespaceUID)
	if err != nil {
		return "", err
	}
	defer unlock()
	found, err = call.search(call.neighbours())
	if err != nil || found != nil {
		return call.available(found, err)
	}
	return call.create()
}

// Remove deletes the access point; the files stay. inUse returns an error for the ID of an access
// point that is in use.
func (c *Connector) Remove(ctx context.Context, account storagev1.AWS, a AccessPoint, known string, inUse func(id string) error) error {
	_, err := c.patient(account, a.OwnerUID+" removed", func() (string, error) { return "", c.remove(ctx, account, a, known, inUse) })
	return err
}

func (c *Connector) remove(ctx context.Context, account storagev1.AWS, a AccessPoint, known string, inUse func(id string) error) error {
	call := caller{ctx, c.connect(account), a}
	found, err := call.byID(known)
	if err == nil && found == nil {
		found, err = call.search(func(types.AccessPointDescription) error { return nil })
	}
	var gone *types.FileSystemNotFound
	switch {
	case errors.As(err, &gone) && known != "":
		return engine.Abandon("access point %s: %s", known, err)
	case errors.As(err, &gone), err == nil && found == nil:
		return nil
	case err != nil:
		return err
	}
	if err := inUse(*found.AccessPointId); err != nil {
		return err
	}
	_, err = call.api.DeleteAccessPoint(ctx, &efs.DeleteAccessPointInput{AccessPointId: found.AccessPointId})
	var missing *types.AccessPointNotFound
	if errors.As(err, &missing) {
		return nil
	}
	return call.explain("DeleteAccessPoint", err)
}

func isDeleted(found types.AccessPointDescription) bool {
	return found.LifeCycleState == types.LifeCycleStateDeleting || found.LifeCycleState == types.LifeCycleStateDeleted
}

// caller makes calls for one access point.
type caller struct {
	ctx    context.Context //nolint:containedctx // of one Do
	api    *efs.Client
	wanted AccessPoint
}

func (c caller) explain(action string, err error) error {
	if err != nil {
		log.FromContext(c.ctx).Info("a call to EFS failed", "action", action, "fileSystem", c.wanted.FileSystem, "error", err.Error())
	}
	return explain(action, c.wanted.FileSystem, err)
}

// byID returns the access point with the ID; nil if it does not exist.
func (c caller) byID(id string) (*types.AccessPointDescription, error) {
	if id == "" {
		return nil, nil
	}
	out, err := c.api.DescribeAccessPoints(c.ctx, &efs.DescribeAccessPointsInput{AccessPointId: &id})
	var missing *types.AccessPointNotFound
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, c.explain("DescribeAccessPoints", err)
	case len(out.AccessPoints) == 0 || isDeleted(out.AccessPoints[0]):
		return nil, nil
	}
	return c.own(out.AccessPoints[0])
}

// own returns a conflict for an access point with the tags of another owner.
func (c caller) own(found types.AccessPointDescription) (*types.AccessPointDescription, error) {
	if !c.wanted.belongs(found) {
		return nil, engine.Fail(engine.ReasonConflict, fmt.Errorf("access point %s has the tags of another owner: the operator neither uses nor deletes it; restore its tags, or delete it", *found.AccessPointId)) //nolint:err113 // only a condition shows it
	}
	return &found, nil
}

// search returns the access point with the token of the SharedVolume; nil if it does not
// exist. check looks at the others. The token alone does not suffice to create nothing twice:
// an access point may exist for years, and AWS does not say how long it remembers a token.
func (c caller) search(check func(types.AccessPointDescription) error) (*types.AccessPointDescription, error) {
	in := &efs.DescribeAccessPointsInput{FileSystemId: &c.wanted.FileSystem, MaxResults: new(int32(pageSize))}
	var refused error
	for page := range maxPages {
		out, err := c.api.DescribeAccessPoints(c.ctx, in)
		switch {
		case err != nil && page > 0 && errors.Is(c.ctx.Err(), context.DeadlineExceeded):
			return nil, engine.Fail(storagev1.ReasonAWSUnreachable, fmt.Errorf("file system %s has many access points, and AWS listed only the first %d of them in the time of one attempt: the operator tries again; delete access points that nobody needs, or use another file system", c.wanted.FileSystem, page*pageSize)) //nolint:err113 // only a condition shows it
		case err != nil:
			return nil, c.explain("DescribeAccessPoints", err)
		}
		for _, found := range out.AccessPoints {
			if isDeleted(found) {
				continue
			}
			if found.ClientToken != nil && *found.ClientToken == *c.wanted.token() {
				return c.own(found)
			}
			if err := check(found); err != nil {
				refused = err
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	return nil, refused
}

// neighbours returns a check of the other access points of the file system: the namespace has
// fewer than its maximum, and no foreign access point has the directory or a part of it.
// Access points of directories above belong to administrators.
func (c caller) neighbours() func(types.AccessPointDescription) error {
	count := 0
	return func(found types.AccessPointDescription) error {
		if tagOf(found, tagCluster) == c.wanted.Cluster && tagOf(found, tagNamespace) == c.wanted.NamespaceUID {
			if count++; count >= c.wanted.Max {
				return engine.Fail(storagev1.ReasonLimitReached, LimitReached(c.wanted.FileSystem, c.wanted.Max)) // remembered, and tried again
			}
			return nil
		}
		if found.RootDirectory != nil && found.RootDirectory.Path != nil && strings.HasPrefix(*found.RootDirectory.Path+"/", c.wanted.Path+"/") {
			return engine.Fail(engine.ReasonConflict, fmt.Errorf("access point %s, which is not the operator's, has directory %s of file system %s: delete it, or create a SharedVolume with another name", *found.AccessPointId, *found.RootDirectory.Path, c.wanted.FileSystem)) //nolint:err113 // only a condition shows it
		}
		return nil
	}
}

// LimitReached is the outcome for a namespace that has as many access points as it may have.
func LimitReached(fileSystem string, most int) error {
	return engine.WaitAs(storagev1.ReasonLimitReached, "the namespace has %d managed access points of file system %s, and its grant allows no more: delete a SharedVolume, or ask an administrator of the cluster for a higher maxPerNamespace", most, fileSystem)
}

// create is tried once: only the search proves that an earlier attempt has created nothing.
func (c caller) create() (string, error) {
	out, err := c.api.CreateAccessPoint(c.ctx, &efs.CreateAccessPointInput{
		ClientToken: c.wanted.token(), FileSystemId: &c.wanted.FileSystem, Tags: c.wanted.tags(),
		PosixUser: &types.PosixUser{Uid: &c.wanted.UID, Gid: &c.wanted.GID},
		RootDirectory: &types.RootDirectory{Path: &c.wanted.Path, CreationInfo: &types.CreationInfo{
			OwnerUid: &c.wanted.UID, OwnerGid: &c.wanted.GID, Permissions: &c.wanted.Permissions,
		}},
	}, func(o *efs.Options) { o.RetryMaxAttempts = 1 })
	var exists *types.AccessPointAlreadyExists
	switch {
	case errors.As(err, &exists) && exists.AccessPointId != nil:
		return c.available(c.byID(*exists.AccessPointId))
	case err != nil:
		return "", c.explain("CreateAccessPoint", err)
	}
	return c.available(&types.AccessPointDescription{AccessPointId: out.AccessPointId, LifeCycleState: out.LifeCycleState}, nil)
}

// available returns the ID of an access point, and an error if it cannot be used.
func (c caller) available(found *types.AccessPointDescription, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", engine.Fail(engine.ReasonProgressing, errors.New("the access point is being deleted")) //nolint:err113 // only a condition shows it
	case found.LifeCycleState == types.LifeCycleStateError:
		return *found.AccessPointId, engine.Fail(storagev1.ReasonAWSRefused, fmt.Errorf("EFS could not create access point %s: delete it, and the operator creates it again", *found.AccessPointId)) //nolint:err113 // only a condition shows it
	case found.LifeCycleState != types.LifeCycleStateAvailable:
		return *found.AccessPointId, engine.Fail(engine.ReasonProgressing, fmt.Errorf("access point %s is %s", *found.AccessPointId, found.LifeCycleState)) //nolint:err113 // only a condition shows it
	}
	return *found.AccessPointId, nil
}
