package api

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

// version is the path of the API that the catalog names.
const version = "/v2.1"

// endpoints reports the addresses. The public address is that of the object that exposes
// the API, or of the Service if no object exposes the API. Until a new object is admitted,
// the former public address stays.
func endpoints(cr *novav1.NovaAPI, in engine.Inputs) {
	internal := "http://" + describe(cr).Address(cr.Namespace) + version
	public := internal
	if selected, exposes := exposerOf(cr, in); exposes {
		public = formerURL(cr, commonv1.InterfacePublic)
		if address := selected.address(cr, in); address != "" {
			public = address + version
		}
	}
	cr.Status.Endpoints = nil
	if public != "" {
		cr.Status.Endpoints = append(cr.Status.Endpoints, commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: public})
	}
	cr.Status.Endpoints = append(cr.Status.Endpoints, commonv1.Endpoint{Interface: commonv1.InterfaceInternal, URL: internal})
}

func formerURL(cr *novav1.NovaAPI, audience commonv1.EndpointInterface) string {
	for _, endpoint := range cr.Status.Endpoints {
		if endpoint.Interface == audience {
			return endpoint.URL
		}
	}
	return ""
}
