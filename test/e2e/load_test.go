package e2e

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"

	shared "asterism.dev/test/cloud"
)

// authenticatedOf is the number of requests of which one has a token.
const authenticatedOf = 10

type steadyLoad = shared.Load

// startLoad sends a number of requests per second to an API or a metadata service. Without a
// token, none is authenticated.
func startLoad(ctx context.Context, address, token string, perSecond int) *steadyLoad {
	GinkgoHelper()
	address = shared.ServiceURL(ctx, address)
	urls := slices.Repeat([]string{address + "/"}, authenticatedOf)
	if token != "" {
		urls[0] = address + "/v2.1/flavors"
	}
	return shared.StartLoad(ctx, shared.Requests{URLs: urls, Token: token, PerSecond: perSecond})
}
