package nova

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration/remote"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// apiClient sends requests to the compute API.
type apiClient struct {
	address   string // https://demo-api.openstack.svc.cluster.local:8774/v2.1
	token     string
	authority []byte // PEM, trusted for https; nil: the system's authorities
}

// certificateNeeds is the need of a client of an API that serves TLS: its Secret. Before the Secret
// exists, the pods serve as before.
func certificateNeeds(cr *novav1.Nova) []engine.Need {
	if cr.Spec.API.TLSSecretRef == nil {
		return nil
	}
	return []engine.Need{engine.Secret(cr.Spec.API.TLSSecretRef.Name).Optional()}
}

// newAPIClient returns a client for the internal address of the API.
func newAPIClient(cr *novav1.Nova, in engine.Inputs) (apiClient, error) {
	var c apiClient
	if api, ok := engine.Get[*apiv1.NovaAPI](in, apiName(cr)); ok {
		c.address = commonv1.URLOf(api.Status.Endpoints, commonv1.InterfaceInternal)
	}
	if c.address == "" {
		return c, engine.Wait("NovaAPI %s does not report its internal address yet", apiName(cr))
	}
	if secret := cr.Spec.API.TLSSecretRef; secret != nil {
		c.authority = in.Secret(secret.Name)[config.KeyCA]
	}
	return c, nil
}

// get sends a request for a path, and decodes the answer unless answer is nil.
func (c apiClient) get(ctx context.Context, path string, answer any) error {
	return c.send(ctx, http.MethodGet, path, answer)
}

// microversion is the first in which the ID of a service is a UUID, unique in all cells.
const microversion = "2.53"

func (c apiClient) send(ctx context.Context, method, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, http.NoBody)
	if err != nil {
		return err
	}
	transport, err := remote.NewTransport(request.URL, c.authority)
	if err != nil {
		return err
	}
	defer transport.Close()
	request.Header.Set("X-Auth-Token", c.token)
	request.Header.Set("X-OpenStack-Nova-API-Version", microversion)
	status, content, err := transport.Send(request)
	switch {
	case status != 0 && status != http.StatusOK && status != http.StatusNoContent:
		return fmt.Errorf("%s answered HTTP %d to %s %s", request.URL.Host, status, method, request.URL.Path)
	case err != nil:
		return &remote.Unreachable{Address: request.URL.Host, Err: err}
	case answer == nil:
		return nil
	}
	return json.Unmarshal(content, answer)
}
