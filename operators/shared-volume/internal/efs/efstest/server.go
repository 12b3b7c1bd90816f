// Package efstest has a server with the calls of EFS that the operator makes, for the suites:
// they need no Python. TestAnswersLikeMoto compares its answers with those of moto.
package efstest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

const pathOfPoints = "/2015-02-01/access-points"

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
	Full       Fault = "AccessPointLimitExceeded"
	Missing    Fault = "FileSystemNotFound"
	Unsigned   Fault = "UnrecognizedClientException"
	BadRequest Fault = "BadRequest"
)

var status = map[Fault]int{Throttled: 429, Failed: 500, Denied: 403, Full: 403, Missing: 404, Unsigned: 403, BadRequest: 400}

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
		server := httptest.NewServer(&Server{points: map[string]*point{}})
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

// Points returns the access points of a file system, without a fault.
func (p *Proxy) Points(t testing.TB, fileSystem string) []types.AccessPointDescription {
	t.Helper()
	api := awsefs.New(awsefs.Options{Region: "eu-central-1", BaseEndpoint: &p.backend, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		})})
	var all []types.AccessPointDescription
	for pages := awsefs.NewDescribeAccessPointsPaginator(api, &awsefs.DescribeAccessPointsInput{FileSystemId: &fileSystem}); pages.HasMorePages(); {
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

func actionOf(r *http.Request) string {
	switch {
	case !strings.HasPrefix(r.URL.Path, pathOfPoints):
		return "AssumeRoleWithWebIdentity"
	case r.Method == http.MethodPost:
		return "CreateAccessPoint"
	case r.Method == http.MethodDelete:
		return "DeleteAccessPoint"
	}
	return "DescribeAccessPoints"
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	action := actionOf(r)
	p.mu.Lock()
	p.calls = append(p.calls, action)
	fault := None
	if p.fault != nil {
		fault = p.fault(len(p.calls), action)
	}
	p.mu.Unlock()
	if fault != None && fault != Lost {
		refuse(w, string(fault), status[fault])
		return
	}
	forwarded, err := http.NewRequestWithContext(r.Context(), r.Method, p.backend+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	forwarded.Header, forwarded.ContentLength = r.Header.Clone(), r.ContentLength
	answer, err := p.transport.RoundTrip(forwarded)
	if err != nil || fault == Lost {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// point is an access point; what the Server does not read is as it was sent.
type point struct {
	AccessPointId, ClientToken, FileSystemId, LifeCycleState string
	Tags, PosixUser, RootDirectory                           json.RawMessage
}

// Server is a small EFS. An access point is available at once.
type Server struct {
	mu     sync.Mutex
	points map[string]*point
	last   int
}

// page is the greatest number of access points in an answer.
const page = 100

func refuse(w http.ResponseWriter, code string, status int) {
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"ErrorCode": code, "Message": code + " for arn:aws:iam::123456789012:user/secret"})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, pathOfPoints), "/")
	switch actionOf(r) {
	case "AssumeRoleWithWebIdentity":
		_, _ = fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
	case "CreateAccessPoint":
		s.create(w, r)
	case "DeleteAccessPoint":
		delete(s.points, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.describe(w, r)
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	s.last++
	created := &point{AccessPointId: fmt.Sprintf("fsap-%017x", s.last), LifeCycleState: "available"}
	if err := json.NewDecoder(r.Body).Decode(created); err != nil {
		refuse(w, "BadRequest", http.StatusBadRequest)
		return
	}
	s.points[created.AccessPointId] = created
	_ = json.NewEncoder(w).Encode(created)
}

func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if id := query.Get("AccessPointId"); id != "" {
		if s.points[id] == nil {
			refuse(w, "AccessPointNotFound", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"AccessPoints": []*point{s.points[id]}})
		return
	}
	found := []*point{}
	for _, point := range s.points {
		if point.FileSystemId == query.Get("FileSystemId") && point.AccessPointId > query.Get("NextToken") {
			found = append(found, point)
		}
	}
	slices.SortFunc(found, func(a, b *point) int { return strings.Compare(a.AccessPointId, b.AccessPointId) })
	out := map[string]any{"AccessPoints": found}
	if len(found) > page {
		out["AccessPoints"], out["NextToken"] = found[:page], found[page-1].AccessPointId
	}
	_ = json.NewEncoder(w).Encode(out)
}
