// Package efs calls the API of AWS EFS for the access points of SharedVolumes.
package efs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"k8s.io/apimachinery/pkg/util/wait"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

const (
	// environmentEndpoint is the variable with which AWS's own programs reach another server,
	// for tests of a whole cluster. Only administrators of the operator can set it.
	environmentEndpoint = "AWS_ENDPOINT_URL"
	// credentialsFolder is the mount of the Secret with the access key, and of the token of
	// the ServiceAccount.
	credentialsFolder = "/var/run/secrets/asterism.dev/aws"

	fileKeyID  = "aws_access_key_id"
	fileSecret = "aws_secret_access_key" //nolint:gosec // the name of a file
	fileToken  = "token"

	// keyAge is the greatest age of an access key that was read: the Secret may change.
	keyAge = time.Minute
	// pauseJitter is the part of a pause by which pauses differ.
	pauseJitter = 0.5
	// attempts of one call, and the longest pause between them: a stage may take ten seconds.
	attempts = 3
	maxPause = 2 * time.Second
	// defaultPause is the time for which a creation is not tried again after a refusal that
	// only a person ends: each attempt reads the whole list of the file system.
	defaultPause = 2 * time.Minute
	// concurrency is the number of locks for namespaces.
	concurrency = 32
)

var errNoKey = errors.New("the operator has no access key")

// Connector connects to EFS. All objects share the connection of a region and role.
type Connector struct {
	// Endpoint replaces the servers of AWS; "" does not.
	Endpoint string
	// Folder has the access key and the token; "" is credentialsFolder.
	Folder string
	// Pause after a refusal; 0 is defaultPause.
	Pause time.Duration

	mu      sync.Mutex
	of      storagev1.AWS
	api     *efs.Client
	locks   [concurrency]chan struct{}
	refused map[string]refusal // by the UID of the owner
}

// refusal is an outcome that stands for some time.
type refusal struct {
	until time.Time
	of    storagev1.AWS
	err   error
}

// NewConnector returns a Connector with the endpoint of the environment.
func NewConnector() *Connector { return &Connector{Endpoint: os.Getenv(environmentEndpoint)} }

// connect returns the client for the account.
func (c *Connector) connect(account storagev1.AWS) *efs.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api == nil || c.of != account {
		c.of, c.api = account, efs.New(efs.Options{
			Region: account.Region, BaseEndpoint: c.endpoint(), Credentials: aws.NewCredentialsCache(c.credentials(account)),
			// The adaptive retryer would make the calls of all objects wait beyond their
			// deadline. After a throttled call, the engine backs off.
			Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, maxPause }),
		})
	}
	return c.api
}

func (c *Connector) endpoint() *string {
	if c.Endpoint == "" {
		return nil
	}
	return &c.Endpoint
}

// credentials never asks the metadata service of the node: the operator would get the rights
// of the node.
func (c *Connector) credentials(account storagev1.AWS) aws.CredentialsProvider {
	folder := credentialsFolder
	if c.Folder != "" {
		folder = c.Folder
	}
	if account.RoleARN != "" {
		api := sts.New(sts.Options{Region: account.Region, BaseEndpoint: c.endpoint()})
		return stscreds.NewWebIdentityRoleProvider(api, account.RoleARN, stscreds.IdentityTokenFile(filepath.Join(folder, fileToken)),
			func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = "asterism-shared-volume" })
	}
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		id, err := os.ReadFile(filepath.Join(folder, fileKeyID))
		secret, err2 := os.ReadFile(filepath.Join(folder, fileSecret))
		if err != nil || err2 != nil {
			return aws.Credentials{}, errNoKey
		}
		return aws.Credentials{
			AccessKeyID: strings.TrimSpace(string(id)), SecretAccessKey: strings.TrimSpace(string(secret)),
			CanExpire: true, Expires: time.Now().Add(keyAge),
		}, nil
	})
}

// lock lets one caller at a time create access points for a namespace, so that their number
// is exact.
func (c *Connector) lock(ctx context.Context, namespaceUID string) (unlock func(), err error) {
	sum := 0
	for _, char := range []byte(namespaceUID) {
		sum = (sum*31 + int(char)) % concurrency
	}
	c.mu.Lock()
	if c.locks[sum] == nil {
		c.locks[sum] = make(chan struct{}, 1)
	}
	lock := c.locks[sum]
	c.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// patient makes a call, unless AWS has refused it a short time ago for a cause that only a
// person ends.
func (c *Connector) patient(account storagev1.AWS, owner string, call func() (string, error)) (string, error) {
	c.mu.Lock()
	before, known := c.refused[owner]
	c.mu.Unlock()
	if known && before.of == account && time.Now().Before(before.until) {
		return "", before.err
	}
	id, err := call()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.refused, func(_ string, old refusal) bool { return time.Now().After(old.until) })
	delete(c.refused, owner)
	switch engine.Reason(err) {
	case storagev1.ReasonAWSDenied, storagev1.ReasonAWSLimitReached, storagev1.ReasonAWSRefused, storagev1.ReasonLimitReached, engine.ReasonConflict:
		if c.refused == nil {
			c.refused = map[string]refusal{}
		}
		c.refused[owner] = refusal{time.Now().Add(wait.Jitter(cmp.Or(c.Pause, defaultPause), pauseJitter)), account, err}
	}
	return id, err
}
