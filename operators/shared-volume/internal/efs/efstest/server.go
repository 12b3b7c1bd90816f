// Package efstest has a server with the calls of EFS that the operator makes, for the suites:
// they need no Python. The same tests run against moto, with EnvironmentEndpoint.
package efstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsefs "github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"asterism.dev/operators/shared-volume/internal/efs"
)

// EnvironmentEndpoint is a variable with the URL of a server of EFS, such as moto's, that the
// tests use instead of a Server.
const EnvironmentEndpoint = "EFS_TEST_ENDPOINT"

// EnvironmentSubnets is a variable with two subnets of that server, separated by a comma.
const EnvironmentSubnets = "EFS_TEST_SUBNETS"

// Subnets returns two subnets.
func Subnets() []string {
	return strings.Split(cmp.Or(os.Getenv(EnvironmentSubnets), "subnet-0000000a,subnet-0000000b"), ",")
}

const pathOfEFS = "/2015-02-01/"

// Tag returns the value of a tag.
func Tag(point types.AccessPointDescription, key string) string {
	for _, tag := range point.Tags {
		if *tag.Key == key {
			return *tag.Value
		}
	}
	return ""
}

// Fault is what happens to a call.
type Fault string

// The faults.
const (
	None       Fault = ""
	Lost       Fault = "the answer is lost"
	Throttled  Fault = "ThrottlingException"
	Failed     Fault = "InternalServerError"
	Denied     Fault = "AccessDeniedException"
	Untrusted  Fault = "AccessDenied" // of STS
	Rejected   Fault = "IDPRejectedClaim"
	Full       Fault = "AccessPointLimitExceeded"
	Missing    Fault = "FileSystemNotFound"
	Unsigned   Fault = "UnrecognizedClientException"
	BadRequest Fault = "BadRequest"

	// Answers whose objects are not available.
	Creating Fault = "creating"
	Broken   Fault = "error"
)

var status = map[Fault]int{Throttled: 429, Failed: 500, Denied: 403, Untrusted: 403, Rejected: 403, Full: 403, Missing: 404, Unsigned: 403, BadRequest: 400}

// Proxy counts calls, and lets some of them fail, in front of a Server or of another server of
// EFS.
type Proxy struct {
	URL string

	backend   string
	transport http.Transport // not the default one, whose connections any closed server ends

	mu    sync.Mutex
	calls []string
	fault func(n int, action string) Fault
}

// Start starts a proxy and, without EnvironmentEndpoint, the server behind it.
func Start(t testing.TB) *Proxy {
	t.Helper()
	backend := os.Getenv(EnvironmentEndpoint)
	if backend == "" {
		server := httptest.NewServer(&Server{all: map[string]object{}, last: rand.Int64()})
		t.Cleanup(server.Close)
		backend = server.URL
	}
	p := &Proxy{backend: backend}
	front := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(front.Close)
	p.URL = front.URL
	return p
}

// Connector returns a connection with an access key.
func (p *Proxy) Connector(t testing.TB) *efs.Connector {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret\n", "token": "token"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &efs.Connector{Endpoint: p.URL, Folder: folder, Pause: time.Nanosecond}
}

// Calls returns the actions so far.
func (p *Proxy) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Direct returns a client without faults.
func (p *Proxy) Direct() *awsefs.Client {
	return awsefs.New(awsefs.Options{Region: "eu-central-1", BaseEndpoint: &p.backend, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		})})
}

// NewFileSystem creates a file system and returns its ID.
func (p *Proxy) NewFileSystem(t testing.TB) string {
	t.Helper()
	made, err := p.Direct().CreateFileSystem(t.Context(), &awsefs.CreateFileSystemInput{CreationToken: new(fmt.Sprint("test-", rand.Int64()))})
	if err != nil {
		t.Fatal(err)
	}
	return *made.FileSystemId
}

// DeleteFileSystem deletes a file system behind the operator's back, with its access points.
func (p *Proxy) DeleteFileSystem(t testing.TB, id string) {
	t.Helper()
	if _, err := p.Direct().DeleteFileSystem(t.Context(), &awsefs.DeleteFileSystemInput{FileSystemId: &id}); err != nil {
		t.Fatal(err)
	}
}

// Points returns the access points of a file system, without a fault.
func (p *Proxy) Points(t testing.TB, of string) []types.AccessPointDescription {
	t.Helper()
	var all []types.AccessPointDescription
	for pages := awsefs.NewDescribeAccessPointsPaginator(p.Direct(), &awsefs.DescribeAccessPointsInput{FileSystemId: &of}); pages.HasMorePages(); {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out.AccessPoints...)
	}
	return all
}

// Fail sets the fault of each call, by its number from 1.
func (p *Proxy) Fail(fault func(n int, action string) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.calls = fault, nil
}

const (
	fileSystem = "FileSystem"
	login      = "AssumeRoleWithWebIdentity"
)

// paths are those of the kinds of objects.
var paths = map[string]string{"access-points": "AccessPoint", "file-systems": fileSystem, "mount-targets": "MountTarget"}

// actionOf returns the action, the kind of object, and its ID in the path.
func actionOf(r *http.Request) (action, kind, id string) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, pathOfEFS), "/")
	kind = paths[parts[0]]
	switch {
	case kind == "":
		return login, "", ""
	case r.Method == http.MethodPost:
		return "Create" + kind, kind, ""
	case r.Method == http.MethodDelete:
		return "Delete" + kind, kind, parts[1]
	}
	return "Describe" + kind + "s", kind, ""
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	action, _, _ := actionOf(r)
	p.mu.Lock()
	p.calls = append(p.calls, action)
	fault := None
	if p.fault != nil {
		fault = p.fault(len(p.calls), action)
	}
	p.mu.Unlock()
	switch {
	case fault == None || fault == Lost || fault == Creating || fault == Broken:
	case action == login:
		w.WriteHeader(status[fault])
		_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>for arn:aws:iam::123456789012:role/secret</Message></Error></ErrorResponse>`, fault)
		return
	default:
		refuse(w, string(fault), status[fault])
		return
	}
	forwarded, err := http.NewRequestWithContext(r.Context(), r.Method, p.backend+r.URL.RequestURI(), r.Body)
	if err != nil {
		refuse(w, err.Error(), http.StatusInternalServerError)
		return
	}
	forwarded.Header, forwarded.ContentLength = r.Header.Clone(), r.ContentLength
	answer, err := p.transport.RoundTrip(forwarded)
	if err != nil || fault == Lost {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if fault != None {
		body = bytes.ReplaceAll(body, []byte(`"available"`), []byte(`"`+fault+`"`))
		answer.Header.Del("Content-Length")
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body)
}

// object is an access point, a file system or a mount target, with the fields of its request.
type object map[string]any

// Server is a small EFS. All objects are available at once. A token is remembered for file
// systems only.
type Server struct {
	mu   sync.Mutex
	all  map[string]object // by ID
	last int64             // begins at a random number: parallel tests share PersistentVolumes
}

// page is the greatest number of objects in an answer.
const page = 100

var prefixes = map[string]string{"AccessPoint": "fsap-", fileSystem: "fs-", "MountTarget": "fsmt-"}

func refuse(w http.ResponseWriter, code string, status int) {
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"ErrorCode": code, "Message": code + " for arn:aws:iam::123456789012:user/secret"})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	action, kind, id := actionOf(r)
	switch {
	case kind == "":
		_, _ = fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
	case strings.HasPrefix(action, "Create"):
		s.create(w, r, kind)
	case id != "":
		s.remove(w, kind, id)
	default:
		s.describe(w, r.URL.Query(), kind)
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, kind string) {
	made := object{}
	if err := json.NewDecoder(r.Body).Decode(&made); err != nil {
		refuse(w, "BadRequest", http.StatusBadRequest)
		return
	}
	if of, _ := made["FileSystemId"].(string); kind != fileSystem && s.all[of] == nil {
		refuse(w, string(Missing), http.StatusNotFound)
		return
	}
	for _, other := range s.all {
		if kind == fileSystem && other["CreationToken"] == made["CreationToken"] {
			refuse(w, "FileSystemAlreadyExists", http.StatusConflict)
			return
		}
	}
	s.last++
	id := fmt.Sprintf("%s%017x", prefixes[kind], s.last)
	made[kind+"Id"], made["LifeCycleState"], made["OwnerId"] = id, "available", "123456789012"
	switch kind {
	case fileSystem:
		made["SizeInBytes"], made["NumberOfMountTargets"], made["CreationTime"] = map[string]any{"Value": 6144}, 0, 1
	case "MountTarget":
		made["AvailabilityZoneName"] = "zone-of-" + made["SubnetId"].(string) //nolint:forcetypeassert // the operator sends it
	}
	s.all[id] = made
	_ = json.NewEncoder(w).Encode(made)
}

func (s *Server) remove(w http.ResponseWriter, kind, id string) {
	for _, target := range s.all {
		if kind == fileSystem && target["MountTargetId"] != nil && target["FileSystemId"] == id {
			refuse(w, "FileSystemInUse", http.StatusConflict)
			return
		}
	}
	delete(s.all, id)
	maps.DeleteFunc(s.all, func(_ string, part object) bool { return kind == fileSystem && part["FileSystemId"] == id })
	w.WriteHeader(http.StatusNoContent)
}

// describe returns the objects with all fields of the query. An ID that does not exist is
// refused, also that of the file system of access points and mount targets.
func (s *Server) describe(w http.ResponseWriter, query url.Values, kind string) {
	for _, of := range []string{kind, fileSystem} {
		if id := query.Get(of + "Id"); id != "" && s.all[id] == nil {
			refuse(w, of+"NotFound", http.StatusNotFound)
			return
		}
	}
	found := []string{}
	for id, one := range s.all {
		matches := strings.HasPrefix(id, prefixes[kind]) && id > query.Get("NextToken")
		for name := range query {
			matches = matches && (one[name] == nil || one[name] == query.Get(name))
		}
		if matches {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	out := map[string]any{}
	if len(found) > page {
		found, out["NextToken"] = found[:page], found[page-1]
	}
	objects := []object{}
	for _, id := range found {
		objects = append(objects, s.all[id])
	}
	out[kind+"s"] = objects
	_ = json.NewEncoder(w).Encode(out)
}
