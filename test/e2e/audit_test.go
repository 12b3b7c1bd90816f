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

// isWork leaves out what an operator does to lead and to answer for its metrics.
func (r request) isWork() bool {
	switch r.ObjectRef.Resource {
	case "leases", "tokenreviews", "subjectaccessreviews":
		return false
	}
	return true
}

// creates says whether the request made an object: an apply may, too.
func (r request) creates() bool { return r.Response.Code == 201 }

// isCut says whether whoever made the request was gone before its answer: it may
// have had its effect.
func (r request) isCut() bool { return r.Response.Code == http.StatusGatewayTimeout }

func auditPath() string { return filepath.Join(stateFolder(), "audit.log") }

// auditNow is the place in the audit log at which what comes is written.
func auditNow() int64 {
	GinkgoHelper()
	info, err := os.Stat(auditPath())
	Expect(err).NotTo(HaveOccurred())
	return info.Size()
}

// auditSince reads what was written since then.
func auditSince(position int64) []request {
	GinkgoHelper()
	all, _ := auditFrom(position)
	return all
}

// auditFrom also returns the place at which to go on.
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
			return all, position // without a line that is half written
		}
		Expect(err).NotTo(HaveOccurred())
		position += int64(len(line))
		var entry request
		if json.Unmarshal(bytes.TrimSpace(line), &entry) == nil {
			all = append(all, entry)
		}
	}
}

// by keeps the requests of the service accounts of some namespaces that are work.
func by(requests []request, namespaces ...string) []request {
	var kept []request
	for _, r := range requests {
		isTheirs := func(namespace string) bool { return strings.HasPrefix(r.User.Username, account(namespace)) }
		if slices.ContainsFunc(namespaces, isTheirs) && r.isWork() {
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
