package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// request is an entry of the API server's audit log.
type request struct {
	Verb       string
	RequestURI string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Response   struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

func (r request) String() string {
	path := strings.Trim(strings.Join([]string{r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name, r.ObjectRef.Subresource}, "/"), "/")
	return fmt.Sprintf("%s %s %s (%d)", strings.TrimPrefix(r.User.Username, "system:serviceaccount:"), r.Verb, path, r.Response.Code)
}

func (r request) isWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// isWork excludes the requests for leader election and for access to metrics, and discovery:
// kinds that are not served cannot be watched, so that operators look for them repeatedly.
func (r request) isWork() bool {
	switch r.ObjectRef.Resource {
	case "", "leases", "tokenreviews", "subjectaccessreviews":
		return false
	}
	return true
}

// creates reports whether the request created an object, also by server-side apply.
func (r request) creates() bool { return r.Response.Code == 201 }

// isAborted reports whether the client ended before the response. The request may have
// had its effect.
func (r request) isAborted() bool { return r.Response.Code == http.StatusGatewayTimeout }

func auditPath() string { return filepath.Join(stateFolder(), "audit.log") }

// auditNow returns the current end of the audit log, for auditSince.
func auditNow() int64 {
	GinkgoHelper()
	info, err := os.Stat(auditPath())
	Expect(err).NotTo(HaveOccurred())
	return info.Size()
}

// auditSince returns the requests logged after a position.
func auditSince(position int64) []request {
	GinkgoHelper()
	all, _ := auditFrom(position)
	return all
}

// auditFrom also returns the position at which to continue.
func auditFrom(position int64) ([]request, int64) {
	GinkgoHelper()
	file, err := os.Open(auditPath())
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	_, err = file.Seek(position, io.SeekStart)
	Expect(err).NotTo(HaveOccurred())
	var all []request
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return all, position // before an incomplete line
		}
		Expect(err).NotTo(HaveOccurred())
		position += int64(len(line))
		var entry request
		if json.Unmarshal(bytes.TrimSpace(line), &entry) == nil {
			all = append(all, entry)
		}
	}
}

// by selects the requests of the service accounts of some namespaces for which isWork holds.
func by(requests []request, namespaces ...string) []request {
	var kept []request
	for _, r := range requests {
		isFrom := func(namespace string) bool { return strings.HasPrefix(r.User.Username, account(namespace)) }
		if slices.ContainsFunc(namespaces, isFrom) && r.isWork() {
			kept = append(kept, r)
		}
	}
	return kept
}

func writes(requests []request) []request {
	var kept []request
	for _, r := range requests {
		if r.isWrite() {
			kept = append(kept, r)
		}
	}
	return kept
}

func texts(requests []request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.String())
	}
	return all
}
