package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// upkeepSpecs use the cloud of cellSpecs, whose cell2 has no access to the API database.
func upkeepSpecs(namespace string, nova *cloud, patch func(context.Context, string)) {
	const host = "demo-cell2-fake"
	awaitRun := func(ctx context.Context, result string) {
		GinkgoHelper()
		awaitWithin(ctx, patience, "Nova", namespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
			found, _, _ := unstructured.NestedString(o.Object, "status", "upkeep", "result")
			g.Expect(found).To(MatchRegexp(result), "%s", conditionOf(o, "UpkeepDone"))
			g.Expect(conditionOf(o, "UpkeepDone").message).To(ContainSubstring("the next run begins at"))
			g.Expect(isReady(o)).To(BeTrue())
		})
	}
	remove := func(ctx context.Context) {
		GinkgoHelper()
		patch(ctx, `[{"op": "remove", "path": "/spec/nova/upkeep"}]`)
		awaitWithin(ctx, patience, "Nova", namespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
			_, exists, _ := unstructured.NestedMap(o.Object, "status", "upkeep")
			g.Expect(exists).To(BeFalse())
		})
	}
	shadows := func(ctx context.Context) []string {
		GinkgoHelper()
		return query(ctx, namespace, "SELECT host FROM demo_cell2.shadow_instances")
	}

	It("archives and purges the rows of deleted instances of every cell", func(ctx SpecContext) {
		serve(ctx, namespace, "neutron", neutron)
		deleted := func() []string {
			return query(ctx, namespace, "SELECT uuid FROM demo_cell2.instances WHERE deleted <> 0")
		}
		servers := len(deleted()) + len(nova.serversOn(ctx, host))
		nova.deleteServersOn(ctx, host)
		Eventually(deleted).WithContext(ctx).WithTimeout(patience).Should(HaveLen(servers))
		uuid := deleted()[0]
		mapping := func() []string {
			return query(ctx, namespace, "SELECT instance_uuid FROM demo_api.instance_mappings WHERE instance_uuid = ?", uuid)
		}
		Expect(mapping()).NotTo(BeEmpty())

		patch(ctx, `[{"op": "add", "path": "/spec/nova/upkeep", "value": {"archiveAfterDays": 0}}]`)
		awaitRun(ctx, `^archived [1-9]\d* rows, \d+ s$`)
		Expect(deleted()).To(BeEmpty())
		Expect(shadows(ctx)).To(ContainElement(host))
		Expect(mapping()).To(BeEmpty())

		By("purging them")
		remove(ctx)
		patch(ctx, `[{"op": "add", "path": "/spec/nova/upkeep", "value": {"archiveAfterDays": 0, "purgeAfterDays": 0}}]`)
		awaitRun(ctx, `^archived \d+ rows, purged [1-9]\d* rows, \d+ s$`)
		Expect(shadows(ctx)).To(BeEmpty())
		remove(ctx)
		nova.bootOn(ctx, host)
	}, SpecTimeout(15*time.Minute))
}
