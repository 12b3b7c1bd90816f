package nova

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// A process of Nova keeps the endpoints of other OpenStack services as long as its token, by default
// an hour. A login returns the whole catalog, so that each request for Available also shows whether
// one has changed.

// endpointPause is the shortest time between two restarts for the endpoint of one service: two
// Keystones with different catalogs must not restart Nova all the time.
const endpointPause = 10 * time.Minute

func lookups(cr *novav1.Nova, in engine.Inputs) ([]nova.Lookup, error) {
	secret, _, err := identity(cr).Secret(in)
	return nova.Lookups(cr.Spec.SharedConnections, secret), err
}

// observeServices returns the endpoints in a catalog, in which find looks.
func observeServices(cr *novav1.Nova, in engine.Inputs, find func(types []string, availability, region string) string) (engine.Observed, error) {
	all, err := lookups(cr, in)
	observed := engine.Observed{}
	for _, lookup := range all {
		if url := find(lookup.Types, lookup.Interface, lookup.Region); url != "" {
			observed[string(lookup.Name)] = url
		}
	}
	return observed, err
}

// reportServices copies the observed endpoints into the status.
func reportServices(cr *novav1.Nova, in engine.Inputs) {
	observed := in.Observed(commonv1.ConditionAvailable)
	looked, err := lookups(cr, in)
	if observed == nil || err != nil {
		return // not for this spec yet
	}
	var all []novav1.OpenStackServiceStatus
	for _, lookup := range looked {
		if status := statusOf(lookup, serviceStatus(cr, lookup.Name), observed[string(lookup.Name)], in.Now()); status != nil {
			all = append(all, *status)
		}
	}
	cr.Status.OpenStackServices = all
}

// statusOf returns the status of a service after a lookup, nil for none; found is "" if the catalog
// has no endpoint. An endpoint that has left the catalog stays: it may be about to come back. One
// that is new is no change, and neither is one that was found by another lookup: the spec has
// changed, which restarts the callers itself.
func statusOf(lookup nova.Lookup, known *novav1.OpenStackServiceStatus, found string, now time.Time) *novav1.OpenStackServiceStatus {
	switch {
	case found == "", known != nil && found == known.Endpoint:
	case known == nil:
		return &novav1.OpenStackServiceStatus{Name: lookup.Name, Endpoint: found, Lookup: lookup.String()}
	case known.Lookup != lookup.String():
		known.Endpoint, known.Lookup = found, lookup.String()
	case known.LastChangeTime == nil || now.Sub(known.LastChangeTime.Time) >= endpointPause:
		known.Endpoint, known.Changes, known.LastChangeTime = found, known.Changes+1, &metav1.Time{Time: now}
	}
	return known
}

// serviceStatus returns a copy of the status of a service, nil for none.
func serviceStatus(cr *novav1.Nova, name sharedv1.OpenStackServiceName) *novav1.OpenStackServiceStatus {
	i := slices.IndexFunc(cr.Status.OpenStackServices, func(s novav1.OpenStackServiceStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return cr.Status.OpenStackServices[i].DeepCopy()
}

// sharedConnections are those of the spec, with the number of changes of each endpoint.
func sharedConnections(cr *novav1.Nova) sharedv1.SharedConnections {
	return nova.Revised(cr.Spec.SharedConnections, func(name sharedv1.OpenStackServiceName) string {
		if known := serviceStatus(cr, name); known != nil && known.Changes > 0 {
			return strconv.Itoa(int(known.Changes))
		}
		return ""
	})
}
