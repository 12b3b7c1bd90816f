package enginetest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Request is one request to the API server, in the terms of RBAC.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, apply, delete
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// Accept is the header, which is different for requests of metadata only.
	Accept string
	// Query is the raw query of the address.
	Query string
	// Status of the answer; 0 without an answer.
	Status int
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s -> %d", r.Verb, resource, r.Name, r.Status)
}

// Writes tells whether the request is a write.
func (r Request) Writes() bool {
	return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
}

// MetadataOnly tells whether the request is for metadata only.
func (r Request) MetadataOnly() bool {
	return strings.Contains(r.Accept, "as=PartialObjectMetadata")
}

// Requests are all requests of one operator, except for leases and events.
type Requests struct {
	mu  sync.Mutex
	all []Request
}

// All returns all requests so far.
func (r *Requests) All() []Request {
	return r.filter(func(Request) bool { return true })
}

// Writes returns the writes so far.
func (r *Requests) Writes() []Request { return r.filter(Request.Writes) }

// Reads returns the reads so far.
func (r *Requests) Reads() []Request {
	return r.filter(func(q Request) bool { return !q.Writes() })
}

// Of returns the requests with a verb and a resource, optionally with a subresource
// ("widgets/status").
func (r *Requests) Of(verb, resource string) []Request {
	return r.filter(func(q Request) bool {
		whole := q.Resource
		if q.Subresource != "" {
			whole += "/" + q.Subresource
		}
		return q.Verb == verb && whole == resource
	})
}

// Reset removes all requests so far.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

func (r *Requests) filter(keep func(Request) bool) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kept []Request
	for _, request := range r.all {
		if keep(request) {
			kept = append(kept, request)
		}
	}
	return kept
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *Requests) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		parsed, counted := ParseRequest(request)
		r.mu.Lock()
		position := len(r.all)
		if counted {
			r.all = append(r.all, parsed) // before it is sent: an answer may never come
		}
		r.mu.Unlock()
		response, err := next.RoundTrip(request)
		if counted && err == nil {
			r.mu.Lock()
			if position < len(r.all) && r.all[position] == parsed {
				r.all[position].Status = response.StatusCode
			}
			r.mu.Unlock()
		}
		return response, err
	})
}

// ParseRequest parses a request to the API server; ok is false for discovery, leases and
// events.
func ParseRequest(request *http.Request) (parsed Request, ok bool) {
	parsed = Request{Accept: request.Header.Get("Accept"), Query: request.URL.RawQuery}
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case path[0] == "api" && len(path) > 2:
		path = path[2:]
	case path[0] == "apis" && len(path) > 3:
		parsed.Group, path = path[1], path[3:]
	default:
		parsed.Resource = "discovery"
		parsed.Verb = "get"
		return parsed, false
	}
	if path[0] == "namespaces" && len(path) > 2 {
		parsed.Namespace, path = path[1], path[2:]
	}
	path = append(path, "", "")
	parsed.Resource, parsed.Name, parsed.Subresource = path[0], path[1], path[2]
	parsed.Verb = verbOf(request, parsed.Name)
	return parsed, parsed.Resource != "leases" && parsed.Resource != "events"
}

func verbOf(request *http.Request, name string) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	}
	switch {
	case request.URL.Query().Get("watch") != "":
		return "watch"
	case name == "":
		return "list"
	}
	return "get"
}
