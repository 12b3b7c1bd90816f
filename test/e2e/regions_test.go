package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// addRegion adds a region to the Keystone of a namespace, in which no service answers. Its
// endpoints are before those of the other region in the order of Keystone's table, so that a
// client which does not ask for a region gets them.
func addRegion(ctx context.Context, namespace string, serviceTypes ...string) {
	GinkgoHelper()
	statements := []string{"INSERT INTO keystone.region (id, description, extra) VALUES ('RegionZero', '', '{}')"}
	for _, serviceType := range serviceTypes {
		for _, side := range []string{"admin", "internal", "public"} {
			id := strings.Repeat("0", 16) + fmt.Sprintf("%.8s%.8s", serviceType, side)
			statements = append(statements, fmt.Sprintf("INSERT INTO keystone.endpoint (id, interface, service_id, url, extra, enabled, region_id)"+
				" SELECT '%s', '%s', id, 'http://127.0.0.1:1', '{}', 1, 'RegionZero' FROM keystone.service WHERE type = '%s'", id, side, serviceType))
		}
	}
	execute(ctx, namespace, statements...)
}
