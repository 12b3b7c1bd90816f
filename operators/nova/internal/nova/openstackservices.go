package nova

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// A process of Nova keeps the endpoints of other OpenStack services as long as its token, by default
// an hour. A login returns the whole catalog, so that each request for Available also shows whether
// one has changed.

// endpointPause is the shortest time between two restarts for the endpoint of one service: two
// Keystones with different catalogs must not restart Nova all the time.
const endpointPause = 10 * time.Minute

// observeServices returns the endpoints in a catalog, in which find looks.
func observeServices(cr *novav1.Nova, find func(types []string, availability, region string) string) engine.Observed {
	observed := engine.Observed{}
	for _, lookup := range nova.Lookups(cr.Spec.SharedConnections) {
		if url := find(lookup.Types, lookup.Interface, lookup.Region); url != "" {
			observed[string(lookup.Name)] = url
		}
	}
	return observed
}

// reportServices copies the observed endpoints into the status.
func reportServices(cr *novav1.Nova, in engine.Inputs) {
	observed := in.Observed(commonv1.ConditionAvailable)
	api, exists := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	if observed == nil || !exists {
		return // not for this spec yet
	}
	secret := identityOf(api)
	account := in.Hash(secret) // a registered account has another Secret when it changes
	if cr.Spec.Identity.ConnectionSecretRef != nil {
		account = in.Hash(in.Secret(secret))
	}
	var all []novav1.OpenStackServiceStatus
	for _, lookup := range nova.Lookups(cr.Spec.SharedConnections) {
		known := serviceStatus(cr, lookup.Name)
		if known == nil {
			known = &novav1.OpenStackServiceStatus{Name: lookup.Name, Changes: changes(cr, in, lookup.Name)}
		}
		if status := statusOf(lookup.String()+", account "+account, *known, observed[string(lookup.Name)], in.Now()); status.Endpoint != "" {
			all = append(all, status)
		}
	}
	cr.Status.OpenStackServices = all
}

// statusOf returns the status of a service after a lookup; found is "" if the catalog has no
// endpoint. An endpoint that has left the catalog stays: it may be about to come back. One that is new
// is no change, and neither is one that was found by another lookup, or with another account: what has
// changed restarts the callers itself.
func statusOf(lookup string, status novav1.OpenStackServiceStatus, found string, now time.Time) novav1.OpenStackServiceStatus {
	switch {
	case found == "":
	case status.Lookup != lookup:
		status.Endpoint, status.Lookup = found, lookup
	case status.Endpoint == found:
	case status.LastChangeTime == nil || now.Sub(status.LastChangeTime.Time) >= endpointPause:
		status.Endpoint, status.Changes, status.LastChangeTime = found, status.Changes+1, &metav1.Time{Time: now}
	}
	return status
}

// serviceStatus returns the status of a service, nil for none.
func serviceStatus(cr *novav1.Nova, name sharedv1.OpenStackServiceName) *novav1.OpenStackServiceStatus {
	for i := range cr.Status.OpenStackServices {
		if cr.Status.OpenStackServices[i].Name == name {
			return &cr.Status.OpenStackServices[i]
		}
	}
	return nil
}

// changes returns the number of changes of an endpoint. If the status is lost, the superconductor has
// it: another number would restart the callers.
func changes(cr *novav1.Nova, in engine.Inputs, name sharedv1.OpenStackServiceName) int32 {
	if known := serviceStatus(cr, name); known != nil {
		return known.Changes
	}
	conductor, ok := engine.Get[*conductorv1.NovaConductor](in, superconductorName(cr))
	if !ok {
		return 0
	}
	for _, entry := range conductor.Spec.OpenStackServices {
		if number, err := strconv.ParseInt(entry.EndpointRevision, 10, 32); entry.Name == name && err == nil {
			return int32(number)
		}
	}
	return 0
}

// sharedConnections are those of the spec, with the number of changes of each endpoint.
func sharedConnections(cr *novav1.Nova, in engine.Inputs) sharedv1.SharedConnections {
	shared := cr.Spec.SharedConnections
	for _, lookup := range nova.Lookups(cr.Spec.SharedConnections) {
		if number := changes(cr, in, lookup.Name); number > 0 {
			shared = nova.WithRevision(shared, lookup.Name, strconv.Itoa(int(number)))
		}
	}
	return shared
}
